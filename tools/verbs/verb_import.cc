#include <fmt/format.h>

#include "index/ingest/ingest_graph.h"
#include "rhizome/ingest.h"
#include "storage/array/array_facts.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/help.h"
#include "tools/import/dataset.h"
#include "tools/import/elements.h"
#include "tools/import/graphbolt.h"
#include "tools/import/homes_json.h"
#include "tools/import/layout_flags.h"
#include "tools/import/ogb.h"
#include "tools/import/wordnet.h"
#include "tools/verbs/import_run.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

/// Attaches the class names that `similar` prints.
void AttachLabelNames(GraphInput& graph) {
  Json names = Json::array();
  for (const std::string_view name : WordNetLabelNames()) names.push_back(name);
  for (ArrayInput& array : graph.arrays) {
    if (array.name == "label") array.attributes.emplace_back(kLabelNamesAttribute, names.dump());
  }
}

Result<IngestReport> ImportWordNet(FileSystem& fs, const ImportFlags& flags,
                                   const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(GraphInput graph,
                           ReadWordNet(fs,
                                       {.folder = flags.from.empty() ? kWordNetFolder : flags.from,
                                        .feature_dim = flags.feature_dim,
                                        .layout = flags.layout.layout,
                                        .codec = flags.layout.codec,
                                        .chunk_rows = flags.layout.chunk_rows,
                                        .inner_rows = flags.layout.inner_rows},
                                       control));
  AttachLabelNames(graph);
  IngestOptions options{.build = flags.layout.build};
  SetHomes(flags.layout.homes, options);
  if (options.homes_file)
    return Fail(Status::InvalidArgument(
        "import wordnet --homes must be edgecut or owner; for a file of homes, use `ingest`"));
  return IngestGraph(fs, flags.store, std::move(graph), options.build, flags.layout.store_id,
                     control);
}

/// Converts the flags to ingest options, as IngestFlags does for `ingest`.
IngestOptions OptionsOf(Dataset dataset, const ImportFlags& flags) {
  IngestOptions options = std::move(dataset.options);
  const LayoutFlags& layout = flags.layout;
  options.undirected = flags.undirected;
  options.id_type = IdType::kInteger;
  options.layout = layout.layout;
  options.codec = layout.codec;
  options.chunk_rows = layout.chunk_rows;
  options.inner_rows = layout.inner_rows;
  options.build = layout.build;
  SetHomes(layout.homes, options);
  options.store_id = layout.store_id;
  options.choose_partitions = layout.partitions_flag->count() == 0;
  options.spill = flags.spill;
  options.scratch = flags.scratch;
  // If the data set already holds all of the allowed memory, set the smallest limit, so that the
  // import fails with kOutOfMemory.
  const std::uint64_t memory_bytes = layout.input_memory_bytes();
  options.memory_bytes = memory_bytes == 0                   ? 0
                         : memory_bytes > dataset.held_bytes ? memory_bytes - dataset.held_bytes
                                                             : 1;
  return options;
}

Json VertexRangesJson(const std::vector<VertexRange>& ranges) {
  Json list = Json::array();
  std::uint64_t first = 0;
  for (const VertexRange& range : ranges) {
    list.push_back({{"type", range.type}, {"first_id", first}, {"count", range.count}});
    first += range.count;
  }
  return list;
}

}  // namespace

// Imports a data set: (1) prepares the memory limit; (2) reads WordNet, or the description of an
// OGB or GraphBolt data set, as input of Ingest; (3) ingests it; (4) reports the parts that were
// left out and the id ranges of vertex types.
Result<Answer> RunImport(const ImportFlags& flags, Session& session) {
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t base_memory_bytes,
                           StartLimited(session, flags.layout));
  const Stopwatch watch;
  const auto finish = [&](IngestReport report) {
    const double seconds = watch.seconds();
    report.seconds = seconds;
    return IngestAnswer(session, flags.store, report, flags.layout.build.partition,
                        base_memory_bytes);
  };
  if (flags.name == "wordnet") {
    RHIZOME_ASSIGN_OR_RETURN(const IngestReport report, ImportWordNet(fs, flags, session.control));
    return finish(report);
  }
  if (flags.from.empty())
    return Fail(Status::InvalidArgument(
        fmt::format("import {}: name the data set's folder with --from DIR", flags.name)));
  RHIZOME_ASSIGN_OR_RETURN(
      Dataset dataset, flags.name == "ogb"
                           ? ReadOgb(fs, flags.from, flags.split, flags.layout.input_memory_bytes())
                           : ReadGraphBolt(fs, flags.from, flags.layout.input_memory_bytes()));
  for (const std::string& what : dataset.left_out) Tell(session, "not imported", what);
  const Json left_out = dataset.left_out;
  const Json ranges = VertexRangesJson(dataset.vertices);
  RHIZOME_ASSIGN_OR_RETURN(
      const IngestReport report,
      Ingest(fs, flags.store, OptionsOf(std::move(dataset), flags), session.control));
  Answer answer = finish(report);
  answer.fields["left_out"] = left_out;
  answer.fields["vertex_ranges"] = ranges;
  return answer;
}

std::string KindOfFolder(const Path& folder) {
  std::error_code unknown;
  if (std::filesystem::exists(folder / "metadata.yaml", unknown)) return "graphbolt";
  return std::filesystem::is_directory(folder / "raw", unknown) ? "ogb" : "";
}

void AddImportVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* verb = AddVerb(root, session, "import", "Create a store from a known data set",
                           "rhizome import wordnet wordnet.rz --partitions 4", flags, RunImport);
  verb->add_option("NAME", flags->name,
                   "Data set: wordnet (Debian's package wordnet-base); or its format: ogb (folder "
                   "with raw/ and split/), graphbolt (folder with metadata.yaml)")
      ->required()
      ->type_name("wordnet|ogb|graphbolt")
      ->check([](const std::string& name) {
        return name == "wordnet" || name == "ogb" || name == "graphbolt"
                   ? ""
                   : "'" + name + "' is not one of wordnet, ogb and graphbolt";
      });
  verb->add_option("STORE", flags->store, "Folder to create")->required();
  verb->add_option("--from", flags->from,
                   fmt::format("The data set's folder; default for wordnet: {}", kWordNetFolder))
      ->type_name("DIR");
  verb->add_option("--feature-dim", flags->feature_dim,
                   "wordnet: number of columns of feat, which has the hashed gloss")
      ->check(CLI::Range(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--split", flags->split, "ogb: split to use if there are several")
      ->type_name("NAME");
  verb->add_flag("--undirected", flags->undirected,
                 "ogb, graphbolt: treat each line as an edge in both directions");
  AddLayoutFlags(*verb, flags->layout);
  AddSpill(*verb, flags->spill, flags->scratch);
  ArrangeOptions(*verb, {"from", "split", "undirected", "partitions", "memory", "threads"},
                 {"feature-dim", "partitioner", "layout", "codec", "scratch"});
}

}  // namespace rhizome
