#include "tools/verbs/verb_plan.h"

#include <fmt/format.h>

#include "index/ingest/ingest_plan.h"
#include "index/partition/partitioner.h"
#include "tools/cli/help.h"
#include "tools/cli/text.h"
#include "tools/import/ingest_flags.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

std::string DescribePlan(const Json& f) {
  const auto about = [](const Json& exact) { return exact.get<bool>() ? "" : "about "; };
  std::string text =
      fmt::format("input: {}{}, {}{} with {} ids, {} of files\n", about(f["edges_exact"]),
                  Plural(f["edges"], "edge"), about(f["vertices_exact"]),
                  WithCommas(f["vertices"]) + " vertices", f["id_kind"].get<std::string>(),
                  HumanBytes(f["input_bytes"]));
  TextTable table;
  table.Add({"memory without scratch files", HumanBytes(f["memory_to_hold_bytes"])});
  table.Add({"minimum memory", HumanBytes(f["least_memory_bytes"])});
  text += table.ToString("  ");
  text += fmt::format("with --memory {}:\n", HumanBytes(f["memory_bytes"]));
  TextTable plan;
  plan.Add({"edges", f["spilled"].get<bool>() ? "with scratch files" : "in memory"});
  plan.Add({"minimum partitions", WithCommas(f["partitions"])});
  plan.Add({"partitioner", f["partitioner"].get<std::string>()});
  plan.Add({"peak memory", HumanBytes(f["peak_memory_bytes"])});
  plan.Add({"store", HumanBytes(f["store_bytes"])});
  plan.Add({"scratch files", HumanBytes(f["scratch_bytes"])});
  plan.Add({"peak disk space", HumanBytes(f["disk_bytes"])});
  plan.Add({"free disk space", HumanBytes(f["free_bytes"])});
  plan.Add({"estimated time", HumanSeconds(f["seconds"])});
  return text + plan.ToString("  ");
}

std::string_view IdKind(const InputEstimate& input) {
  return input.string_ids ? "string" : input.dense_ids ? "dense" : "integer";
}

Result<Answer> PlanIngestion(const IngestFlags& flags, Session&) {
  RHIZOME_ASSIGN_OR_RETURN(const IngestOptions options, flags.ToOptions());
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_ASSIGN_OR_RETURN(IngestPlan plan, PlanIngest(fs, options));
  plan.memory_bytes =
      options.memory_bytes == 0 ? plan.memory_bytes + kStoreMemoryBytes : flags.layout.memory_bytes;
  plan.memory_to_hold += kStoreMemoryBytes;
  plan.peak_memory_bytes += kStoreMemoryBytes;
  plan.min_memory = std::max(plan.min_memory + kStoreMemoryBytes, kMinMemoryBytes);
  const Path store = std::filesystem::absolute(flags.store.empty() ? "." : flags.store);
  Path folder = store;
  std::error_code unknown;
  while (!std::filesystem::exists(folder, unknown) && folder.has_relative_path())
    folder = folder.parent_path();
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t free_bytes, fs.FreeBytes(folder));

  Json fields = {{"edges", plan.edges},
                 {"edges_exact", plan.input.edges_exact},
                 {"vertices", plan.input.vertices},
                 {"vertices_exact", plan.input.vertices_exact},
                 {"id_kind", IdKind(plan.input)},
                 {"input_bytes", plan.input.input_bytes},
                 {"array_bytes", plan.input.array_bytes},
                 {"memory_to_hold_bytes", plan.memory_to_hold},
                 {"least_memory_bytes", plan.min_memory},
                 {"memory_bytes", plan.memory_bytes},
                 {"spilled", plan.spilled},
                 {"partitions", plan.partitions},
                 {"partitioner", PartitionerName(plan.partitioner)},
                 {"peak_memory_bytes", plan.peak_memory_bytes},
                 {"store_bytes", plan.store_bytes},
                 {"scratch_bytes", plan.scratch_bytes},
                 {"disk_bytes", plan.disk_bytes},
                 {"free_bytes", free_bytes},
                 {"seconds", plan.seconds}};
  Status verdict;
  if (options.memory_bytes > 0 && plan.memory_bytes < plan.min_memory)
    verdict = Status::OutOfMemory(
        fmt::format("--memory {} is too small: about {} are needed for any number of partitions",
                    HumanBytes(plan.memory_bytes), HumanBytes(plan.min_memory)));
  else if (plan.disk_bytes > free_bytes)
    verdict =
        Status::OutOfSpace(fmt::format("{} has {} free, but about {} are needed", folder.string(),
                                       HumanBytes(free_bytes), HumanBytes(plan.disk_bytes)));
  return Answer{std::move(fields), DescribePlan, std::move(verdict)};
}

}  // namespace

void AddPlanVerb(CLI::App& root, Session& session) {
  CLI::App* plan =
      root.add_subcommand("plan", "Estimate what a job would need, without running it");
  plan->require_subcommand(1);
  plan->footer("Example: rhizome plan ingest --help");
  auto flags = std::make_shared<IngestFlags>();
  CLI::App* verb =
      AddVerb(*plan, session, "ingest",
              "Estimate the memory, disk space, time and partitions of an ingestion",
              "rhizome plan ingest --edges demo/edges.npy --memory 512M", flags, PlanIngestion);
  verb->add_option("STORE", flags->store,
                   "Folder that would be created; default: the current folder");
  AddIngestFlags(*verb, *flags);
  verb->get_option("--edges")->required();
  ArrangeOptions(*verb,
                 {"edges", "nodes", "node-columns", "array", "columns", "header", "partitions",
                  "memory", "threads"},
                 {"no-header", "delimiter", "end-types", "edge-array", "undirected", "vertices",
                  "dtype", "homes", "layout", "codec"});
  AddPlanInfer(*plan, session);
  AddPlanTrain(*plan, session);
}

}  // namespace rhizome
