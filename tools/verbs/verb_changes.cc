#include <fmt/format.h>

#include <bit>
#include <optional>

#include "index/generation/graph_builder.h"
#include "rhizome/change_feed.h"
#include "storage/array/array_facts.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/text.h"
#include "tools/cli/text_output.h"
#include "tools/import/elements.h"
#include "tools/import/stored_texts.h"
#include "tools/verbs/change_marks.h"
#include "tools/verbs/update_file.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct ChangesFlags {
  std::string store;
  std::string out;
  std::optional<std::uint64_t> after;
  std::uint64_t last = 0;
};

/// Converts a value of an edge attribute, an integer or the bits of a double, to JSON.
Json ValueJson(const EdgeAttributeInfo& info, std::int64_t bits) {
  const ElementType type(info);
  if (info.dtype != DataType::kFloat32) return ToJson(type, std::as_bytes(std::span(&bits, 1)))[0];
  const auto number = static_cast<float>(std::bit_cast<double>(bits));
  return ToJson(type, std::as_bytes(std::span(&number, 1)))[0];
}

/// Converts changes to JSON lines that `put` reads.
class ChangeLines {
 public:
  explicit ChangeLines(const OpenedGraph& opened) : opened_(opened), texts_(*opened.graph) {}

  /// Returns the line of a change; nullopt for a new type, which `put --create-types` creates on
  /// first use.
  Result<std::optional<Json>> Of(const Change& change) {
    switch (change.kind) {
      case Change::Kind::kDeleteVertex:
        return Json{{"op", "delete"}, {"id", IdJson(change.id)}};
      case Change::Kind::kPutVertex:
        return Json{{"id", IdJson(change.id)}, {"type", change.name}};
      case Change::Kind::kDeleteEdges:
        return Json{{"op", "delete"},
                    {"src", IdJson(change.id)},
                    {"dst", IdJson(change.neighbor_id)},
                    {"type", change.name}};
      case Change::Kind::kPutEdge:
        return Edge(change);
      case Change::Kind::kPutRow: {
        const ArrayEntry* array = opened_.store->manifest().FindArray(change.name);
        if (array == nullptr)
          return Fail(Status::NotFound(fmt::format("array '{}' no longer exists", change.name)));
        RHIZOME_ASSIGN_OR_RETURN(Json row, texts_.RowJson(*array, change.row));
        return Json{{"id", IdJson(change.id)}, {"rows", {{change.name, std::move(row)}}}};
      }
      default:
        return std::optional<Json>();
    }
  }

 private:
  Result<std::optional<Json>> Edge(const Change& change) {
    Json line = {
        {"src", IdJson(change.id)}, {"dst", IdJson(change.neighbor_id)}, {"type", change.name}};
    if (opened_.graph->info().weighted) line["weight"] = change.weight;
    const auto about = opened_.graph->edge_attributes();
    if (change.attributes.empty()) return std::optional(std::move(line));
    for (const EdgeAttributeInfo& info : about) {
      const auto bits = std::span(change.attributes).subspan(info.first_value, info.dim);
      RHIZOME_ASSIGN_OR_RETURN(Json values, Values(info, bits));
      Json& value = IsJsonField(info.name) ? line[kAttributesField][info.name] : line[info.name];
      value = info.dim == 1 ? values[0] : values;
    }
    return std::optional(std::move(line));
  }

  Result<Json> Values(const EdgeAttributeInfo& info, std::span<const std::int64_t> bits) {
    const ArrayEntry* const array =
        opened_.store->manifest().FindArray(EdgeArrayName(info.name, 0));
    if (array != nullptr && HasTexts(*array)) return texts_.RowJson(*array, std::as_bytes(bits));
    Json values = Json::array();
    for (const std::int64_t one : bits) values.push_back(ValueJson(info, one));
    return values;
  }

  const OpenedGraph& opened_;
  StoredTexts texts_;
};

/// Writes the lines of changes, with marks in the first and last line. From these, `put` verifies
/// that it applies all changes, and applies them to a store with the state that they continue.
class MarkedLines {
 public:
  MarkedLines(const ChangeFeed& feed, TextOutput& file) : feed_(feed), file_(file) {}

  Status Add(Json line) {
    if (held_) RHIZOME_RETURN_IF_ERROR(WriteHeld());
    held_ = std::move(line);
    ++changes_;
    if (changes_ == 1) mark_.continues = feed_.continued();
    return Status::Ok();
  }

  /// Writes the last line. Commits without changes are represented by a line with a mark only, so
  /// that the follower records them.
  Status Finish() {
    if (changes_ == 0 && feed_.reached() == feed_.continued()) return Status::Ok();
    if (!held_) {
      held_ = Json::object();
      mark_.continues = feed_.continued();
    }
    mark_.reaches = feed_.reached();
    return WriteHeld();
  }

  std::uint64_t changes() const { return changes_; }

 private:
  Status WriteHeld() {
    if (mark_.continues || mark_.reaches) (*held_)[kMarkField] = MarkJson(mark_);
    mark_ = {};
    return file_.Line(held_->dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  const ChangeFeed& feed_;
  TextOutput& file_;
  std::optional<Json> held_;  // last line, not written yet
  ChangeMark mark_;           // mark for the held line
  std::uint64_t changes_ = 0;
};

std::string DescribeChanges(const Json& f) {
  return fmt::format("wrote {} to {}: commits {} to {}\n", Plural(f["changes"], "change"),
                     f["file"].get<std::string>(), f["after"].get<std::uint64_t>() + 1,
                     f["last"].get<std::uint64_t>());
}

// Writes changes: (1) opens the graph and a feed of the changes after the given commit; (2)
// converts each change to a JSON line (ChangeLines) and writes it (MarkedLines); (3) marks the last
// line and commits the file.
Result<Answer> RunChanges(const ChangesFlags& flags, Session& session) {
  constexpr std::uint64_t kReportChanges = 4096;
  RHIZOME_RETURN_IF_ERROR(CheckOutputs(session, flags.out));
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened,
                           OpenGraph(flags.store, session, TopologyPlace::kLazy));
  const std::uint64_t after = flags.after.value_or(opened.store->base_sequence());
  RHIZOME_ASSIGN_OR_RETURN(const auto feed,
                           ChangeFeed::Open(*opened.graph, {.after = after, .last = flags.last}));
  RHIZOME_ASSIGN_OR_RETURN(TextOutput file, TextOutput::Create(flags.out));
  ChangeLines lines(opened);
  MarkedLines marked(*feed, file);
  Change change;
  for (std::uint64_t seen = 0;; ++seen) {
    if (seen % kReportChanges == 0)
      RHIZOME_RETURN_IF_ERROR(session.control.Report({.phase = "reading changes", .done = seen}));
    RHIZOME_ASSIGN_OR_RETURN(const bool more, feed->Next(change));
    if (!more) break;
    RHIZOME_ASSIGN_OR_RETURN(auto line, lines.Of(change));
    if (line) RHIZOME_RETURN_IF_ERROR(marked.Add(*std::move(line)));
  }
  RHIZOME_RETURN_IF_ERROR(marked.Finish());
  RHIZOME_RETURN_IF_ERROR(file.Commit());
  const double seconds = watch.seconds();
  return Answer{{{"file", flags.out},
                 {"changes", marked.changes()},
                 {"after", after},
                 {"last", feed->last()},
                 {"last_hash", StoreId{feed->reached().commits}.ToString()},
                 {"seconds", seconds}},
                IsStandardOutput(flags.out) ? nullptr : DescribeChanges,
                {}};
}

}  // namespace

void AddChangesVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<ChangesFlags>();
  CLI::App* verb =
      AddVerb(root, session, "changes",
              "Export the changes since a commit, in order, as JSON lines for `put --create-types`",
              "rhizome changes demo.rz --out changes.jsonl", flags, RunChanges);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option(
          "--after", flags->after,
          "Export the changes after this commit; default: the commit of the current generation")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->type_name("COMMIT");
  verb->add_option("--last", flags->last, "Last commit to export; default: the newest")
      ->check(CLI::PositiveNumber)
      ->type_name("COMMIT");
  verb->add_option("--out", flags->out, "Output file; - for standard output")
      ->required()
      ->type_name("F.jsonl");
}

}  // namespace rhizome
