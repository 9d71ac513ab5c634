#include <fmt/format.h>

#include "storage/base/stopwatch.h"
#include "tools/cli/text.h"
#include "tools/import/generate.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct GenerateFlags {
  std::string out;
  GenerateOptions options;
};

std::string DescribeGenerate(const Json& f) {
  std::string text = "wrote\n";
  TextTable table({1, 2});
  for (const Json& file : f["files"]) {
    const std::string dtype = file["dtype"];
    table.Add({file["path"].get<std::string>(), WithCommas(file["rows"]),
               fmt::format("x {}", file["dim"].get<std::uint64_t>()), dtype});
  }
  return text + table.ToString() + fmt::format("in {}\n", HumanSeconds(f["seconds"]));
}

Result<Answer> RunGenerate(const GenerateFlags& flags, Session& session) {
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const auto files, GenerateGraph(FileSystem::Posix(), flags.out,
                                                           flags.options, session.control));
  const double seconds = watch.seconds();
  Json listed = Json::array();
  for (const GeneratedFile& file : files) {
    listed.push_back({{"path", file.path.string()},
                      {"rows", file.rows},
                      {"dim", file.dim},
                      {"dtype", file.dtype.empty() ? "text" : file.dtype}});
  }
  return Answer{{{"files", std::move(listed)}, {"seconds", seconds}}, DescribeGenerate, {}};
}

}  // namespace

void AddGenerateVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<GenerateFlags>();
  GenerateOptions& options = flags->options;
  CLI::App* verb = AddVerb(
      root, session, "generate", "Generate a synthetic graph: edges.npy, nodes.tsv, features.npy",
      "rhizome generate planted --out demo --scale 12 --dim 32", flags, RunGenerate);
  verb->add_option_function<std::string>(
          "KIND",
          [&options](const std::string& kind) {
            if (kind != "rmat" && kind != "planted") {
              throw CLI::ValidationError("KIND", "'" + kind + "' is not one of rmat|planted");
            }
            options.kind = kind == "rmat" ? GraphKind::kRmat : GraphKind::kPlanted;
          },
          "R-MAT (skewed degrees), or planted communities with labels and a split")
      ->required()
      ->type_name("rmat|planted");
  verb->add_option("--out", flags->out, "Output folder")->required()->type_name("DIR");
  verb->add_option("--scale", options.scale, "Generate 2^N vertices")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--edge-factor", options.edge_factor, "Edges per vertex")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--dim", options.dim, "Number of features per vertex; 0: no features.npy")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--classes", options.classes, "planted: number of communities")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--homophily", options.homophily,
                   "planted: fraction of edges within a community")
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--feature-signal", options.feature_signal,
                   "planted: strength of the class signal in the features, relative to noise of "
                   "standard deviation 1")
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--seed", options.seed, "Random seed; equal seeds give equal bytes")
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--undirected", options.undirected,
                 "Write each pair once, smaller id first (ingest with --undirected)");
  verb->add_flag("--simple", options.simple, "Generate no self-loops and no parallel edges");
  verb->add_flag("--permute", options.permute, "Shuffle the vertex ids");
}

}  // namespace rhizome
