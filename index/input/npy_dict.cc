#include "index/input/npy_dict.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace rhizome {
inline namespace internal {
namespace {

// The maximum number of dimensions in NumPy before version 2.
constexpr std::size_t kMaxRank = 32;

/// Parses the few Python literals that a .npy header may contain.
class DictParser {
 public:
  explicit DictParser(std::string_view text) : text_(text) {}

  Result<NpyDict> Parse() {
    if (!Take('{')) return Fail(Bad("no dictionary"));
    while (!Take('}')) {
      RHIZOME_RETURN_IF_ERROR(ParseItem());
      if (Take(',')) continue;
      if (!Take('}')) return Fail(Bad("a comma or a closing brace is missing"));
      break;
    }
    SkipSpace();
    if (!text_.empty()) return Fail(Bad("text after the dictionary"));
    if (!has_descr_) return Fail(Bad("the key 'descr' is missing"));
    if (!has_order_) return Fail(Bad("the key 'fortran_order' is missing"));
    if (!has_shape_) return Fail(Bad("the key 'shape' is missing"));
    return std::move(dict_);
  }

 private:
  static Status Bad(std::string_view what) {
    return Status::InvalidArgument(fmt::format("malformed .npy header: {}", what));
  }

  Status ParseItem() {
    RHIZOME_ASSIGN_OR_RETURN(const std::string_view key, ParseString("a key"));
    if (!Take(':')) return Bad(fmt::format("no colon after the key '{}'", key));
    bool* seen = key == "descr"           ? &has_descr_
                 : key == "fortran_order" ? &has_order_
                 : key == "shape"         ? &has_shape_
                                          : nullptr;
    if (seen == nullptr) return Bad(fmt::format("unknown key '{}'", key));
    if (*seen) return Bad(fmt::format("the key '{}' is repeated", key));
    *seen = true;
    if (seen == &has_order_) return ParseOrder();
    if (seen == &has_shape_) return ParseShape();
    return ParseDescr();
  }

  Status ParseDescr() {
    SkipSpace();
    if (text_.starts_with('['))
      return Status::InvalidArgument(
          "the dtype has fields (a structured array), which is not supported");
    RHIZOME_ASSIGN_OR_RETURN(const std::string_view descr, ParseString("'descr'"));
    dict_.descr = descr;
    return Status::Ok();
  }

  Status ParseOrder() {
    SkipSpace();
    if (TakeWord("True")) {
      dict_.fortran_order = true;
      return Status::Ok();
    }
    return TakeWord("False") ? Status::Ok() : Bad("'fortran_order' is neither True nor False");
  }

  Status ParseShape() {
    if (!Take('(')) return Bad("'shape' is not a tuple");
    while (!Take(')')) {
      RHIZOME_RETURN_IF_ERROR(ParseExtent());
      if (Take(',')) continue;
      if (!Take(')')) return Bad("'shape' is not closed");
      break;
    }
    return Status::Ok();
  }

  Status ParseExtent() {
    SkipSpace();
    std::uint64_t extent = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
    if (error != std::errc()) return Bad("'shape' has an entry that is not a size");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    TakeWord("L");  // Python 2 wrote long integers with this suffix
    if (dict_.shape.size() == kMaxRank) return Bad("'shape' has too many dimensions");
    dict_.shape.push_back(extent);
    return Status::Ok();
  }

  Result<std::string_view> ParseString(std::string_view what) {
    SkipSpace();
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') return Fail(Bad(fmt::format("{} is not a string", what)));
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos)
      return Fail(Bad(fmt::format("the string of {} is not closed", what)));
    const std::string_view inside = text_.substr(1, end - 1);
    for (const char c : inside)
      if (c < ' ' || c > '~' || c == '\\')
        return Fail(Bad(fmt::format("the string of {} has unexpected characters", what)));
    text_.remove_prefix(end + 1);
    return inside;
  }

  void SkipSpace() {
    const std::size_t first = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(first == std::string_view::npos ? text_.size() : first);
  }

  bool Take(char expected) {
    SkipSpace();
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool TakeWord(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::string_view text_;
  NpyDict dict_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

Result<NpyDict> ParseNpyDict(std::string_view text) { return DictParser(text).Parse(); }

}  // namespace internal
}  // namespace rhizome
