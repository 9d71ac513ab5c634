#include "tools/verbs/schema_file.h"

#include <fmt/format.h>

#include <span>

#include "index/input/input_stream.h"

namespace rhizome {
namespace {

constexpr std::size_t kMaxSchemaBytes = std::size_t{16} << 20;

Result<std::string> ReadText(const std::string& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto stream, InputStream::OpenOnce(FileSystem::Posix(), path));
  std::string text;
  std::string piece(4096, '\0');
  while (text.size() <= kMaxSchemaBytes) {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t got,
                             stream->Read(std::as_writable_bytes(std::span(piece))));
    if (got == 0) return text;
    text.append(piece, 0, got);
  }
  return Fail(Status::InvalidArgument(
      fmt::format("{}: a schema has at most {} bytes", path, kMaxSchemaBytes)));
}

}  // namespace

const char* const kSchemaHelp =
    "A schema is JSON, as `rhizome info STORE --schema` prints it; each member may be absent:\n"
    "  {\"ids\": \"text\", \"weighted\": true, \"edge_types\": [\"cites\"],\n"
    "   \"edge_attributes\": [{\"name\": \"time\", \"dtype\": \"int64\"}],\n"
    "   \"arrays\": [{\"name\": \"feat\", \"dtype\": \"float32\", \"dim\": 128}]}\n"
    "Others: \"undirected\", \"directions\" (\"both\", \"out\" or \"in\"), \"vertex_types\".\n";

Result<GraphSchema> ReadSchema(const std::string& given) {
  if (given.empty()) return GraphSchema{};
  if (given.starts_with("{")) return ParseSchema(given);
  RHIZOME_ASSIGN_OR_RETURN(const std::string text, ReadText(given));
  auto schema = ParseSchema(text);
  if (!schema) return Fail(schema.error().WithContext(given));
  return schema;
}

}  // namespace rhizome
