#include "tools/cli/help.h"
#include "tools/import/ingest_flags.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

Result<Answer> RunIngest(const IngestFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t base_memory_bytes,
                           StartLimited(session, flags.layout));
  RHIZOME_ASSIGN_OR_RETURN(const IngestOptions options, flags.ToOptions());
  RHIZOME_ASSIGN_OR_RETURN(const IngestReport report,
                           Ingest(FileSystem::Posix(), flags.store, options, session.control));
  return IngestAnswer(session, flags.store, report, options.build.partition, base_memory_bytes);
}

}  // namespace

void AddIngestVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<IngestFlags>();
  CLI::App* verb =
      AddVerb(root, session, "ingest", "Create a store from edge lists, node lists and array files",
              "rhizome ingest demo.rz --edges demo/edges.npy --nodes demo/nodes.tsv "
              "--node-columns id,label,split --array feat=demo/features.npy --partitions 4",
              flags, RunIngest);
  verb->add_option("STORE", flags->store, "Folder to create")->required();
  AddIngestFlags(*verb, *flags);
  ArrangeOptions(*verb,
                 {"edges", "nodes", "node-columns", "array", "columns", "header", "undirected",
                  "partitions", "memory", "threads"},
                 {"edge-array", "split-column", "id-type", "vertices", "max-bad-lines", "dtype",
                  "partitioner", "homes", "directions", "layout", "codec", "scratch"});
}

}  // namespace rhizome
