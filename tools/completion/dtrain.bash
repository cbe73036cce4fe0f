# shellcheck shell=bash
# Completion of dtrain for bash: `source` this file, or install dtrain.  `dtrain complete` prints the candidates.
_dtrain() {
  local line=${COMP_LINE:0:COMP_POINT} program=${COMP_WORDS[0]} words word kept candidate
  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=("")
  word=${words[-1]}
  # The text before the last "=" or ":" is not a part of the word that bash replaces.
  kept=${word%"${word##*[=:]}"}
  COMPREPLY=()
  while IFS= read -r candidate; do
    if [ "$candidate" = :files ]; then
      compopt -o filenames
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
    else
      COMPREPLY+=("${candidate#"$kept"}")
    fi
  done < <("${program/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}
complete -F _dtrain dtrain
