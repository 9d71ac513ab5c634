#include "index/ingest/text_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "index/ingest/array_file.h"
#include "index/ingest/node_column.h"
#include "storage/array/text_files.h"
#include "storage/base/escaped_text.h"
#include "storage/base/utf8.h"

namespace rhizome {
inline namespace internal {

std::optional<std::string> TextCodes::Refuse(std::string_view text, std::string_view column) {
  if (text.size() > kMaxCodedTextBytes)
    return fmt::format("the text in the column '{}' has {} bytes, but at most {} are possible",
                       column, text.size(), kMaxCodedTextBytes);
  if (IsUtf8(text)) return std::nullopt;
  return fmt::format("the text in the column '{}' is not valid UTF-8; convert the input to UTF-8",
                     column);
}

std::int64_t TextCodes::Add(std::string_view text) {
  return text.empty() ? -1 : texts_.Add(text).first;
}

AttributeTexts TextCodes::Sort() && {
  // std::function copies its target, so the texts are in a shared pointer.
  struct Held {
    StringKeys keys;
    std::vector<std::int64_t> order;  // number of each code
  };
  auto held = std::make_shared<Held>();
  held->keys = std::move(texts_).TakeKeys();
  texts_ = {};
  held->order.resize(held->keys.size());
  std::iota(held->order.begin(), held->order.end(), std::int64_t{0});
  const StringKeys& keys = held->keys;
  std::sort(held->order.begin(), held->order.end(), [&](std::int64_t a, std::int64_t b) {
    return keys.At(static_cast<std::uint64_t>(a)) < keys.At(static_cast<std::uint64_t>(b));
  });
  AttributeTexts sorted;
  sorted.codes.resize(held->order.size());
  for (std::size_t code = 0; code < held->order.size(); ++code)
    sorted.codes[static_cast<std::size_t>(held->order[code])] = static_cast<std::int64_t>(code);
  sorted.write = [held](FileSystem& fs, const Path& root, std::string_view holder) {
    const TextList texts{held->order.size(), [&](std::uint64_t code) {
                           return held->keys.At(static_cast<std::uint64_t>(held->order[code]));
                         }};
    return WriteTexts(fs, root, holder, texts);
  };
  return sorted;
}

namespace {

/// Returns the number of the last texts that do not ascend (TextList::added).
/// Errors: kInvalidArgument, one of them occurs twice.
Result<std::uint64_t> CountAdded(const std::vector<std::string>& texts) {
  const auto end = std::adjacent_find(texts.begin(), texts.end(), std::greater_equal<>());
  if (end == texts.end()) return 0;
  std::unordered_set<std::string_view> seen;
  for (const std::string& text : texts) {
    if (!seen.insert(text).second)
      return Fail(Status::InvalidArgument(fmt::format("the text '{}' is listed twice", text)));
  }
  return static_cast<std::uint64_t>(texts.end() - end) - 1;
}

}  // namespace

WriteTextsOf WriterOf(std::shared_ptr<const std::vector<std::string>> texts) {
  return [texts = std::move(texts)](FileSystem& fs, const Path& root,
                                    std::string_view holder) -> Result<TextFiles> {
    const auto added = CountAdded(*texts);
    if (!added) return Fail(added.error().WithContext(fmt::format("array '{}'", holder)));
    const auto at = [&](std::uint64_t code) { return std::string_view((*texts)[code]); };
    return WriteTexts(fs, root, holder, {texts->size(), at, *added});
  };
}

Status SetTexts(const std::shared_ptr<const std::vector<std::string>>& texts, ArrayInput& array) {
  if (array.dtype != DataType::kInt64)
    return Status::InvalidArgument(
        fmt::format("array '{}': codes of texts must be int64, but it is {}", array.name,
                    DataTypeName(array.dtype)));
  array.write_texts = WriterOf(texts);
  const auto size = static_cast<std::int64_t>(texts->size());
  array.read_rows = [name = array.name, size, read = std::move(array.read_rows)](
                        std::span<const VertexId> vertices, std::span<std::byte> out) -> Status {
    RHIZOME_RETURN_IF_ERROR(read(vertices, out));
    for (std::size_t at = 0; at < out.size(); at += sizeof(std::int64_t)) {
      std::int64_t code = 0;
      std::memcpy(&code, &out[at], sizeof(code));
      if (code < -1 || code >= size)
        return Status::InvalidArgument(
            fmt::format("array '{}': code {} has no text; there are {}", name, code, size));
    }
    return Status::Ok();
  };
  return Status::Ok();
}

ArrayInput TextColumn::ToArray(std::string name, std::span<const VertexId> vertices,
                               std::uint64_t vertex_count) && {
  AttributeTexts sorted = std::move(codes_).Sort();
  std::vector<std::int64_t> codes(vertex_count, -1);
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    if (numbers_[i] >= 0)
      codes[static_cast<std::size_t>(vertices[i])] =
          sorted.codes[static_cast<std::size_t>(numbers_[i])];
  numbers_ = {};
  ArrayInput array = ColumnArray(std::move(name), DataType::kInt64, std::move(codes));
  array.write_texts = std::move(sorted.write);
  SetMissing(array);
  return array;
}

}  // namespace internal
}  // namespace rhizome
