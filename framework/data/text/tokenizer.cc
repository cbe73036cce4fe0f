#include "framework/data/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "framework/core/utf8.h"
#include "framework/data/text/characters.h"

namespace dtrain {
namespace {

constexpr std::pair<std::string_view, char32_t> kEscapes[] = {
    {"&apos;", '\''}, {"&quot;", '"'}, {"&lt;", '<'},  {"&gt;", '>'},
    {"&#124;", '|'},  {"&#91;", '['},  {"&#93;", ']'}, {"&amp;", '&'}};

// An apostrophe that begins a word, written "&apos;s".  It is in Unicode's private use area, so no text contains it.
constexpr char32_t kWordApostrophe = 0xE000;

// These are English endings; a space before the apostrophe shows that the text has been tokenised.
constexpr std::u32string_view kEndings[] = {U"'s", U"'t", U"'re", U"'ll", U"'ve", U"'m", U"'d"};

std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const auto found =
        std::find_if(std::begin(kEscapes), std::end(kEscapes),
                     [&](const auto& escape) { return text.substr(at).starts_with(escape.first); });
    if (found == std::end(kEscapes)) {
      plain += text[at++];
      continue;
    }
    at += found->first.size();
    const bool begins_word = found->second == '\'' && at < text.size() &&
                             IsWordCharacter(static_cast<unsigned char>(text[at]));
    AppendUtf8(begins_word ? kWordApostrophe : found->second, plain);
  }
  return plain;
}

std::string Escape(std::u32string_view word) {
  std::string text;
  for (const char32_t code : word) {
    const auto found = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                    [code](const auto& escape) { return escape.second == code; });
    if (found == std::end(kEscapes)) {
      AppendUtf8(code, text);
    } else {
      text += found->first;
    }
  }
  return text;
}

// Converts to lower case, with plain forms of quotes, dashes and the ellipsis.
std::u32string Normalise(std::u32string_view codes) {
  std::u32string plain;
  for (const char32_t code : Compose(codes)) {
    switch (code) {
      case 0x2018:
      case 0x2019:
      case 0x201A:
      case 0x201B:
      case 0xB4:
      case '`':
        plain += U'\'';
        break;
      case 0x201C:
      case 0x201D:
      case 0x201E:
      case 0xAB:
      case 0xBB:
        plain += U'"';
        break;
      case 0x2010:
      case 0x2011:
      case 0x2013:
        plain += U'-';
        break;
      case 0x2014:
        plain += U" - ";
        break;
      case 0x2026:
        plain += U"...";
        break;
      default:
        plain += LowerCase(code);
    }
  }
  return plain;
}

bool IsDigit(char32_t code) { return code >= '0' && code <= '9'; }
bool IsLetter(char32_t code) { return IsWordCharacter(code) && !IsDigit(code); }
bool IsSmallLetter(char32_t code) { return IsLetter(code) && LowerCase(code) == code; }

// Splits one stretch between spaces into words; `next` is the first character after the space, 0 at the end of the
// line.
class Stretch {
 public:
  Stretch(std::u32string_view text, char32_t next, Language language,
          std::vector<std::u32string>& words)
      : text_(text), next_(next), language_(language), words_(words) {}

  void Run() {
    for (size_t i = 0; i < text_.size(); ++i) {
      const char32_t code = text_[i];
      if (code == '.') {
        i = Dots(i);
      } else if (code == ',' && IsDigit(At(i, -1)) && IsDigit(At(i, 1))) {
        word_ += code;
      } else if (code == kWordApostrophe ||
                 (code == '\'' && language_ == Language::kEnglish && BeginsWord(i))) {
        End();
        word_ = U'\'';
      } else if (IsWordCharacter(code) || code == '-') {
        word_ += code;
      } else {
        Alone({code});
      }
    }
    End();
  }

 private:
  char32_t At(size_t i, int offset) const {
    const size_t at = i + static_cast<size_t>(offset);
    return at < text_.size() ? text_[at] : 0;
  }

  bool BeginsWord(size_t i) const {
    if (i == 0)
      return std::find(std::begin(kEndings), std::end(kEndings), text_) != std::end(kEndings);
    return IsWordCharacter(At(i, -1)) && IsLetter(At(i, 1));
  }

  // Returns the position of the last dot.
  size_t Dots(size_t i) {
    size_t last = i;
    while (At(last, 1) == '.') ++last;
    if (last > i) {
      Alone(std::u32string(text_.substr(i, last + 1 - i)));
    } else if (!word_.empty() && DotStays(At(i, 1))) {
      word_ += U'.';
    } else {
      Alone(U".");
    }
    return last;
  }

  // True if the dot stays in its word.  `behind` is the next character, 0 at the end of the stretch.  A word that has a
  // dot and a letter, "u.s.", is an abbreviation.
  bool DotStays(char32_t behind) const {
    if (behind != 0) return IsWordCharacter(behind);
    const bool abbreviation = word_.find(U'.') != std::u32string::npos &&
                              std::any_of(word_.begin(), word_.end(), IsLetter);
    return next_ != 0 && (IsSmallLetter(next_) || abbreviation);
  }

  void Alone(std::u32string word) {
    End();
    words_.push_back(std::move(word));
  }
  void End() {
    if (!word_.empty()) words_.push_back(std::exchange(word_, {}));
  }

  const std::u32string_view text_;
  const char32_t next_;
  const Language language_;
  std::vector<std::u32string>& words_;
  std::u32string word_;
};

}  // namespace

std::vector<std::string> Tokenizer::Split(std::string_view line) const {
  const std::u32string codes = Normalise(DecodeUtf8(Unescape(line)));
  std::vector<std::u32string> words;
  const auto skip = [&](size_t at, bool space) {
    while (at < codes.size() && IsWhiteSpace(codes[at]) == space) ++at;
    return at;
  };
  for (size_t begin = skip(0, true); begin < codes.size();) {
    const size_t end = skip(begin, false), next = skip(end, true);
    const std::u32string_view text = std::u32string_view(codes).substr(begin, end - begin);
    Stretch(text, codes[next], language_, words).Run();  // 0 at the end of the string
    begin = next;
  }
  std::vector<std::string> split;
  for (const std::u32string& word : words)
    split.push_back(escape_ ? Escape(word) : EncodeUtf8(word));
  return split;
}

std::string JoinWords(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& escaped : words) {
    std::u32string codes = DecodeUtf8(Unescape(escaped));
    std::replace(codes.begin(), codes.end(), kWordApostrophe, U'\'');
    const std::string word = EncodeUtf8(codes);
    const bool follows =
        word.size() > 1 ? word[0] == '\'' || word[0] == '.' : word.find_first_of(".,;:!?)") == 0;
    if (!text.empty() && !follows) text += ' ';
    text += word;
  }
  return text;
}

}  // namespace dtrain
