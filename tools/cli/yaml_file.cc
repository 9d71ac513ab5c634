#include "tools/cli/yaml_file.h"

#include <fmt/format.h>
#include <yaml.h>

#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "rhizome/graph_types.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;
constexpr std::size_t kMaxDepth = 32;

/// Owner of a libyaml event, which it deletes.
struct Event {
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&raw); }
  yaml_event_t raw{};
};

std::string_view TextOf(const yaml_event_t& event) {
  return {reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length};
}

nlohmann::json ScalarOf(const yaml_event_t& event) {
  const std::string_view text = TextOf(event);
  if (event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return std::string(text);
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (text == "true" || text == "false") return text == "true";
  if (const auto number = ParseCanonicalInteger(text)) return *number;
  return std::string(text);
}

/// Builds a JSON value from libyaml's stream of events. A stack holds the open sequences and
/// mappings, so that nesting does not recurse: a start event pushes a container, a scalar becomes a
/// key or a value of the innermost one, and an end event adds the finished container to its parent.
class YamlReader {
 public:
  YamlReader(std::span<const std::byte> bytes, std::string place) : place_(std::move(place)) {
    ready_ = yaml_parser_initialize(&parser_) != 0;
    if (ready_)
      yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(bytes.data()),
                                   bytes.size());
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;
  ~YamlReader() {
    if (ready_) yaml_parser_delete(&parser_);
  }

  Result<nlohmann::json> Run() {
    if (!ready_) return Fail(Status::OutOfMemory("libyaml could not be initialised"));
    while (true) {
      Event event;
      if (yaml_parser_parse(&parser_, &event.raw) == 0)
        return Fail(Bad(parser_.problem_mark.line,
                        parser_.problem != nullptr ? parser_.problem : "not YAML"));
      if (event.raw.type == YAML_STREAM_END_EVENT) return std::move(root_);
      RHIZOME_RETURN_IF_ERROR(Take(event.raw));
    }
  }

 private:
  struct Open {
    nlohmann::json value;
    std::string key;
    bool has_key = false;
  };

  Status Bad(std::size_t line, std::string_view why) const {
    return Status::InvalidArgument(fmt::format("{}:{}: {}", place_, line + 1, why));
  }

  Status Take(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        return ++documents_ > 1 ? Bad(line, "more than one document") : Status::Ok();
      case YAML_ALIAS_EVENT:
        return Bad(line, "aliases (*name) are not supported; write the value instead");
      case YAML_SCALAR_EVENT:
        return TakeScalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return Begin(nlohmann::json::array(), line);
      case YAML_MAPPING_START_EVENT:
        return Begin(nlohmann::json::object(), line);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: {
        nlohmann::json value = std::move(stack_.back().value);
        stack_.pop_back();
        return Put(std::move(value), line);
      }
      default:
        return Status::Ok();
    }
  }

  Status Begin(nlohmann::json value, std::size_t line) {
    if (stack_.size() == kMaxDepth) return Bad(line, "nested deeper than 32");
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().has_key)
      return Bad(line, "a key must be text");
    stack_.push_back({std::move(value), {}, false});
    return Status::Ok();
  }

  Status TakeScalar(const yaml_event_t& event) {
    if (stack_.empty() || !stack_.back().value.is_object() || stack_.back().has_key)
      return Put(ScalarOf(event), event.start_mark.line);
    Open& open = stack_.back();
    open.key = TextOf(event);
    open.has_key = true;
    if (open.value.contains(open.key))
      return Bad(event.start_mark.line, fmt::format("the key '{}' appears twice", open.key));
    return Status::Ok();
  }

  Status Put(nlohmann::json value, std::size_t line) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return Status::Ok();
    }
    Open& open = stack_.back();
    if (open.value.is_array()) {
      open.value.push_back(std::move(value));
      return Status::Ok();
    }
    if (!std::exchange(open.has_key, false)) return Bad(line, "a value without a key");
    open.value[open.key] = std::move(value);
    return Status::Ok();
  }

  const std::string place_;
  yaml_parser_t parser_{};
  bool ready_ = false;
  std::size_t documents_ = 0;
  std::vector<Open> stack_;
  nlohmann::json root_;
};

}  // namespace

Result<nlohmann::json> ReadYaml(FileSystem& fs, const Path& path) {
  std::error_code unresolved;
  const Path real = std::filesystem::canonical(path, unresolved);
  auto bytes = ReadWholeFile(fs, unresolved ? path : real, kMaxBytes);
  if (!bytes && bytes.error().code() == StatusCode::kCorruption)
    return Fail(Status::InvalidArgument(bytes.error().message()));
  if (!bytes) return Fail(bytes.error());
  return YamlReader(*bytes, path.string()).Run();
}

}  // namespace rhizome
