#include "tools/import/homes_json.h"

#include <fmt/format.h>

#include "tools/cli/text.h"

namespace rhizome {

Json HomesJson(const std::optional<StoredHomes>& homes) {
  if (!homes) return nullptr;
  return {{"homes", homes->homes},
          {"by", HomeRuleName(homes->rule)},
          {"training_vertices", homes->seeds},
          {"cut_share", homes->metrics.cut_share},
          {"row_balance", homes->metrics.row_balance},
          {"training_balance", homes->metrics.seed_balance}};
}

std::string HomesText(const Json& homes) {
  return fmt::format("{} by {}", homes["homes"].get<std::uint32_t>(),
                     homes["by"].get<std::string>());
}

std::string HomesQuality(const Json& homes) {
  std::string text =
      fmt::format("{:.2f} % of edges between homes; largest home relative to the mean: rows {:.3f}",
                  100 * homes["cut_share"].get<double>(), homes["row_balance"].get<double>());
  if (homes["training_vertices"] != 0)
    text += fmt::format(", training vertices {:.3f}", homes["training_balance"].get<double>());
  return text;
}

void SetHomes(const std::string& given, IngestOptions& options) {
  HomeRule& rule = options.build.homes;
  rule = given.empty()                               ? HomeRule::kNone
         : given == HomeRuleName(HomeRule::kEdgeCut) ? HomeRule::kEdgeCut
         : given == HomeRuleName(HomeRule::kOwner)   ? HomeRule::kOwner
                                                     : HomeRule::kFile;
  if (rule == HomeRule::kFile)
    options.homes_file = ArrayFile{.name = std::string(kHomeArray), .path = given};
}

}  // namespace rhizome
