#!/bin/bash
# Makes one archive with dtrain for a machine on which nothing can be installed: program, CUDA module,
# tests for a GPU, configs, and the shared libraries with Open MPI's plugins.  It can be unpacked anywhere and needs
# a glibc at least as new as that of the build machine; CUDA's libraries are the target machine's or PyTorch's.
#
#   tools/bundle.sh [--build FOLDER] [ARCHIVE]     build/release; FOLDER/dtrain-VERSION-REVISION.tar.xz
#
# An ARCHIVE that ends in .tar is not compressed.
#
# Needs a C compiler, patchelf and xz.  Libraries of fast networks (UCX, libfabric, PSM, verbs) are not included:
# they belong to the machine's NICs and drivers, and Open MPI ignores a plugin whose library is missing.
set -euo pipefail

most_bytes=30000000
source=$(cd "$(dirname "$0")/.." && pwd)
build=$source/build/release
if [ "${1:-}" = --build ]; then
  build=$(cd "${2:?--build needs a folder}" && pwd)
  shift 2
fi

for tool in cc patchelf xz strip ldd mpirun ompi_info; do
  command -v "$tool" >/dev/null || { echo "$0: there is no $tool here" >&2; exit 1; }
done
for file in dtrain libdtrain_cuda.so cuda_tests tests/cuda_standin/libdtrain_cuda.so; do
  [ -e "$build/$file" ] || echo "$0: without $file, which is not in $build" >&2
done

if grep -qs 'Ofast-compile' "$build/CMakeCache.txt"; then
  echo "$0: the CUDA module in $build is slow, as tests/run.sh builds it without a GPU.  A fast one:" >&2
  echo "  cmake --preset release -DDTRAIN_CUDA=AUTO -UDTRAIN_CUDA_ARCHS -UCMAKE_CUDA_FLAGS && cmake --build --preset release" >&2
fi

version=$("$build/dtrain" --version)
name=$(echo "$version" | sed -E 's/^dtrain ([^ ]+) \((.*)\)$/dtrain-\1-\2/')
archive=$(realpath -m "${1:-$build/$name.tar.xz}")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
bundle=$stage/$name
mkdir -p "$bundle"/{bin,lib,libexec,etc,share,tests,tools/bench}

# Prints a path that Open MPI reports, relative to its prefix.
mpi_path() {
  ompi_info --path "$1" --parsable | sed 's/^path:[^:]*://'
}
prefix=$(mpi_path prefix)
below_prefix() {
  local path
  path=$(mpi_path "$1")
  echo "${path#"$prefix"/}"
}

cp "$build/dtrain" "$bundle/bin/"
for file in libdtrain_cuda.so libkernel_times.so cuda_tests; do
  [ ! -e "$build/$file" ] || cp "$build/$file" "$bundle/bin/"
done
if [ -e "$build/tests/cuda_standin/libdtrain_cuda.so" ]; then
  mkdir "$bundle/tests/cuda_standin"
  cp "$build/tests/cuda_standin/libdtrain_cuda.so" "$bundle/tests/cuda_standin/"
fi
for program in mpirun orted; do
  cp "$(readlink -f "$(command -v "$program")")" "$bundle/libexec/$program"
  cat >"$bundle/bin/$program" <<'WRAPPER'
#!/bin/sh
# Open MPI with the plugins of this bundle.
bundle=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd) || exit 1
export OPAL_PREFIX="$bundle" OPAL_SYSCONFDIR="$bundle/etc"
export PMIX_PKGLIBDIR="$bundle/lib/pmix" PMIX_PKGDATADIR="$bundle/share/pmix"
export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}"  # Open MPI looks for ssh in it
export HWLOC_HIDE_ERRORS="${HWLOC_HIDE_ERRORS:-2}"  # no warning if /sys is not mounted
# Without ssh it would not start ranks on this machine either; other machines cannot be reached then.
command -v ssh >/dev/null || command -v rsh >/dev/null ||
  export OMPI_MCA_plm_rsh_agent="${OMPI_MCA_plm_rsh_agent:-false}"
exec "$bundle/libexec/$(basename "$0")" "$@"
WRAPPER
  chmod +x "$bundle/bin/$program"
done

plugins=$(below_prefix pkglibdir)
mkdir -p "$bundle/$plugins" "$bundle/$(below_prefix pkgdatadir)"
# Plugins of OpenSHMEM and of performance tools are not used.
find "$(mpi_path pkglibdir)" -name 'mca_*.so' ! -name '*oshmem*' ! -name 'mca_s[pcs]*ml*' ! -name 'mca_scoll_*' \
  ! -name 'mca_sshmem_*' ! -name 'mca_memheap_*' ! -name 'mca_atomic_*' ! -name '*monitoring*' \
  -exec cp {} "$bundle/$plugins/" ';'
cp -r "$(mpi_path pkgdatadir)"/*.txt "$bundle/$(below_prefix pkgdatadir)/"
{
  grep -hv '^ *#' "$(mpi_path sysconfdir)/openmpi-mca-params.conf" 2>/dev/null || true
  echo "# A missing NIC is not reported."
  echo "mca_base_component_show_load_errors = 0"
} >"$bundle/etc/openmpi-mca-params.conf"
: >"$bundle/etc/openmpi-default-hostfile"

cp -r "$source/configs" "$bundle/configs"
cp "$source/tests/gpu.sh" "$bundle/tests/"
cp "$source"/tools/bench/{torch_gpu,torch_step,torch_seq2seq,torch_topk}.py "$bundle/tools/bench/"
cp "$source/README.md" "$source/LICENSE" "$bundle/"

# Prints the paths of the libraries that the given files need, without those of glibc, CUDA and fast networks.
libraries_of() {
  local file
  for file in "$@"; do
    ldd "$file" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
  done | sort -u | grep -Ev '/(ld-linux.*|lib(c|m|dl|pthread|rt|resolv|util|nsl|anl|mvec|thread_db))\.so' |
    grep -Ev '/lib(cuda|cublas|cublasLt|cudnn|cudart|cupti|nv[a-z]*)[._]' |
    grep -Ev '/lib(uc[mpst]|uct|fabric|psm2|psm_infinipath|infinipath|ibverbs|rdmacm|efa|oshmem|mca_common_(ofi|ucx|verbs|monitoring))\.so'
}
mapfile -t elves < <(find "$bundle" -type f \( -name '*.so' -o -path "$bundle/libexec/*" -o -path "$bundle/bin/dtrain" -o -name cuda_tests \))
mapfile -t libraries < <(libraries_of "${elves[@]}")
packages=()
for library in "${libraries[@]}"; do
  cp -L "$library" "$bundle/lib/$(basename "$library")"
  package=$(dpkg-query -S "$(readlink -f "$library")" 2>/dev/null || dpkg-query -S "$library" 2>/dev/null || true)
  [ -z "$package" ] || packages+=("${package%%:*}")
done
# In an Open MPI built by hand, libopen-pal contains PMIx.
for library in "${libraries[@]}"; do
  case $library in
    */libpmix.so.*)
      pmix=$(dirname "$(readlink -f "$library")")
      cp -r "$pmix/pmix" "$bundle/lib/"
      cp -r "$pmix/../share/pmix" "$bundle/share/"
      ;;
  esac
done
# Replaces 31 MB of tables, which only libarchive's reader of .xar uses, by an empty one, as ICU's stubdata does.
for library in "$bundle"/lib/libicudata.so.*; do
  [ -e "$library" ] || continue
  echo "const char icudt${library##*.so.}_dat[64] = {0};" |
    cc -shared -nostdlib -fPIC -Wl,-soname,"$(basename "$library")" -x c - -o "$library"
done
mkdir "$bundle/share/licenses"
for package in $(printf '%s\n' "${packages[@]}" | sort -u); do
  cp -L "/usr/share/doc/$package/copyright" "$bundle/share/licenses/$package" 2>/dev/null || true
done

# A DT_RPATH takes precedence over LD_LIBRARY_PATH: environment modules of a cluster must not load another Open MPI.
while IFS= read -r -d '' file; do
  strip --strip-unneeded "$file"
  # shellcheck disable=SC2016  # the loader replaces $ORIGIN
  patchelf --force-rpath --set-rpath '$ORIGIN'"/$(realpath --relative-to="$(dirname "$file")" "$bundle/lib")" "$file"
done < <(find "$bundle" -type f \( -name '*.so' -o -name '*.so.*' -o -path "$bundle/libexec/*" -o -path "$bundle/bin/dtrain" -o -name cuda_tests \) -print0)

{
  echo "$version"
  echo "needs $(getconf GNU_LIBC_VERSION) or later"
  echo "bin/dtrain doctor says what it finds here; tests/gpu.sh tests it on a GPU"
} >"$bundle/bundle.txt"

mkdir -p "$(dirname "$archive")"
compress=(xz -6 -T0)
[ "${archive%.tar}" = "$archive" ] || compress=(cat)
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" | "${compress[@]}" >"$archive"
bytes=$(stat -c %s "$archive")
echo "$archive: $((bytes / 1000000)) MB"
if [ "${compress[0]}" = xz ] && [ "$bytes" -gt "$most_bytes" ]; then
  echo "$0: the archive is larger than $((most_bytes / 1000000)) MB" >&2
  exit 1
fi
