#include "storage/options/spell_fields.h"

#include <algorithm>
#include <array>

namespace rhizome {
inline namespace internal {
namespace {

constexpr bool kBoolean = true;

/// Sorted by name. tests/tidy_test.py checks that messages name no other field.
constexpr auto kFields = std::to_array<OptionField>({
    {"allow_leaked", kBoolean},
    {"allow_stale", kBoolean},
    {"batch_size"},
    {"block_rows"},
    {"cache"},
    {"cache_bytes"},
    {"checkpoint_every"},
    {"checkpoint_seconds"},
    {"chunk_rows"},
    {"class_weights"},
    {"clip_norm"},
    {"codec"},
    {"columns"},
    {"create_types", kBoolean},
    {"decoder"},
    {"delimiter"},
    {"device"},
    {"device_cache"},
    {"device_memory_bytes"},
    {"dim"},
    {"direction"},
    {"directions"},
    {"disjoint", kBoolean},
    {"dropout"},
    {"dry_run", kBoolean},
    {"dtype"},
    {"edge_weights"},
    {"edges"},
    {"end_types"},
    {"epochs"},
    {"eval_every"},
    {"eval_fanouts"},
    {"fanouts"},
    {"feature_columns"},
    {"features"},
    {"fill_holes", kBoolean},
    {"filter_negatives", kBoolean},
    {"full_graph", kBoolean},
    {"gamma"},
    {"header", kBoolean},
    {"hidden"},
    {"hold_out"},
    {"hold_out_by"},
    {"hold_out_relations"},
    {"homes"},
    {"id_type"},
    {"incremental", kBoolean},
    {"init"},
    {"inner_rows"},
    {"input-dropout"},
    {"inverse"},
    {"io"},
    {"job"},
    {"keep"},
    {"keep_seed_edges", kBoolean},
    {"label_smoothing"},
    {"labels"},
    {"layers"},
    {"layout"},
    {"learning_rate"},
    {"live", kBoolean},
    {"loss"},
    {"margin"},
    {"max_bad_lines"},
    {"memory_bytes"},
    {"meta_path"},
    {"min_delta"},
    {"mode"},
    {"model"},
    {"model_file"},
    {"momentum"},
    {"monitor"},
    {"n3"},
    {"negative_sources"},
    {"negatives"},
    {"neighbor_cache_bytes"},
    {"new_version", kBoolean},
    {"no_edges", kBoolean},
    {"node_columns"},
    {"nodes"},
    {"norm"},
    {"normalize_features", kBoolean},
    {"optimizer"},
    {"order"},
    {"out"},
    {"out_array"},
    {"overlap"},
    {"pairs"},
    {"partitioner"},
    {"partitions"},
    {"patience"},
    {"prefetch"},
    {"prior"},
    {"random_split"},
    {"ranks"},
    {"reciprocal", kBoolean},
    {"remote_bytes"},
    {"replace", kBoolean},
    {"resume", kBoolean},
    {"schedule"},
    {"scorer"},
    {"scores", kBoolean},
    {"scratch"},
    {"seed"},
    {"seed_times"},
    {"seeds"},
    {"spill"},
    {"split"},
    {"split_column"},
    {"steps"},
    {"store_id"},
    {"sums"},
    {"superbatch"},
    {"task"},
    {"test", kBoolean},
    {"test_edges"},
    {"threads"},
    {"time_attribute"},
    {"topology"},
    {"topology_codec"},
    {"trace"},
    {"triplets", kBoolean},
    {"type"},
    {"typed_fanouts"},
    {"types"},
    {"undirected", kBoolean},
    {"valid"},
    {"vertices"},
    {"wait_seconds"},
    {"warmup"},
    {"weight_decay"},
    {"weighted", kBoolean},
    {"workers"},
});

constexpr bool ByName(const OptionField& a, const OptionField& b) { return a.name < b.name; }
static_assert(std::is_sorted(kFields.begin(), kFields.end(), ByName));

/// Returns the mention that `text`, which was in backticks, makes; nullopt if there is none.
std::optional<FieldMention> ParseMention(std::string_view text) {
  constexpr std::string_view kPathLetters = "abcdefghijklmnopqrstuvwxyz_.";
  const std::size_t equals = text.find('=');
  const OptionField wanted{.name = text.substr(0, equals)};
  const std::size_t period = wanted.name.find('.');
  const bool is_path = period != std::string_view::npos && period != 0 &&
                       wanted.name.back() != '.' &&
                       wanted.name.find_first_not_of(kPathLetters) == std::string_view::npos;
  if (is_path && equals == std::string_view::npos)
    return FieldMention{.field = wanted, .value = std::nullopt};
  const auto* const found = std::lower_bound(kFields.begin(), kFields.end(), wanted, ByName);
  if (found == kFields.end() || found->name != wanted.name) return std::nullopt;
  FieldMention mention{.field = *found, .value = std::nullopt};
  if (equals != std::string_view::npos) mention.value = text.substr(equals + 1);
  return mention;
}

}  // namespace

std::span<const OptionField> OptionFields() { return kFields; }

std::string SpellFields(std::string_view message, const FieldSpeller& spell) {
  std::string spelled;
  std::size_t done = 0;  // the bytes before it are in `spelled`
  for (std::size_t open = message.find('`'); open != std::string_view::npos;) {
    const std::size_t close = message.find('`', open + 1);
    if (close == std::string_view::npos) break;
    const auto mention = ParseMention(message.substr(open + 1, close - open - 1));
    const std::optional<std::string> text = mention ? spell(*mention) : std::nullopt;
    if (text) {
      spelled += message.substr(done, open - done);
      spelled += *text;
      done = close + 1;
      open = message.find('`', done);
    } else {
      open = close;  // it may open the next mention: quoted text may hold a single backtick
    }
  }
  spelled += message.substr(done);
  return spelled;
}

}  // namespace internal
}  // namespace rhizome
