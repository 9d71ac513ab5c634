#include "gnn/links/link_decoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gnn/links/decoder_registry.h"
#include "gnn/models/model_shape.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

// Fields of the metadata of a decoder's file.
constexpr const char* kDecoderField = "decoder";
constexpr const char* kNamesField = "relation_names";
constexpr const char* kReciprocalField = "reciprocal";

constexpr const char* kRelations = "relations";

const std::string* FieldOf(const TensorFile& file, const char* name) {
  const auto found = file.metadata.find(name);
  return found == file.metadata.end() ? nullptr : &found->second;
}

Result<std::string> NameOfDecoder(const DecoderChoice& choice, const TensorFile& file) {
  const std::string* const stored = FieldOf(file, kDecoderField);
  if (stored != nullptr && !choice.name.empty() && *stored != choice.name) {
    return Fail(Status::InvalidArgument(
        fmt::format("its decoder is '{}', but `scorer` asks for '{}'; leave out `scorer`", *stored,
                    choice.name)));
  }
  if (stored != nullptr) return *stored;
  if (!choice.name.empty()) return choice.name;
  if (choice.path.empty()) return "dot";
  return Fail(Status::InvalidArgument(
      fmt::format("its metadata has no field {}; name the decoder by `scorer`", kDecoderField)));
}

/// Keeps the tensors of the decoder of a model file. Errors: kInvalidArgument, it has none.
Status KeepDecoder(TensorFile& file) {
  if (!file.metadata.contains(std::string(kModelMetadataKey))) return Status::Ok();
  if (FieldOf(file, kDecoderField) == nullptr)
    return Status::InvalidArgument(
        "the model has no decoder, because it was not trained on links (`task=link`)");
  std::map<std::string, NamedTensor> tensors;
  for (auto& [name, tensor] : file.tensors)
    if (name.starts_with(kDecoderPrefix))
      tensors[name.substr(kDecoderPrefix.size())] = std::move(tensor);
  file.tensors = std::move(tensors);
  return Status::Ok();
}

Result<bool> IsReciprocal(const TensorFile& file) {
  const std::string* const stored = FieldOf(file, kReciprocalField);
  if (stored == nullptr || *stored == "false") return false;
  if (*stored == "true") return true;
  return Fail(Status::InvalidArgument(fmt::format(
      "the metadata field {} is '{}', but must be true or false", kReciprocalField, *stored)));
}

}  // namespace

Result<LinkDecoder> LinkDecoder::Load(const DecoderChoice& choice, std::uint64_t dim,
                                      const std::vector<std::string>& edge_types) {
  TensorFile file;
  if (!choice.path.empty()) {
    auto loaded = LoadSafetensors(FileSystem::Posix(), choice.path);
    if (!loaded) return Fail(OfNamedFile(loaded.error(), choice.path));
    file = std::move(loaded->file);
  }
  const auto with_context = [&](const Status& status) {
    return Fail(choice.path.empty() ? status : status.WithContext(choice.path.string()));
  };
  if (const Status kept = KeepDecoder(file); !kept.ok()) return with_context(kept);
  const Result<std::string> name = NameOfDecoder(choice, file);
  if (!name) return with_context(name.error());
  RHIZOME_ASSIGN_OR_RETURN(const DecoderKind* const kind, FindDecoderKind(*name));
  if (choice.path.empty() && *name != "dot") {
    return Fail(Status::InvalidArgument(
        fmt::format("`scorer={}` needs the weights of a `decoder`, a safetensors file", *name)));
  }
  if (kind->complex_rows && dim % 2 != 0) {
    return with_context(Status::InvalidArgument(
        fmt::format("{} takes rows of complex numbers, so the array must have an even number of "
                    "columns, not {}",
                    *name, dim)));
  }
  LinkDecoder decoder;
  decoder.kind_ = kind;
  const Status taken = decoder.TakeRelations(file, dim, edge_types);
  if (!taken.ok()) return with_context(taken);
  Result<std::unique_ptr<PairDecoder>> made = kind->make({.dim = dim, .file = file});
  if (!made) return with_context(made.error());
  decoder.decoder_ = *std::move(made);
  return decoder;
}

Status LinkDecoder::TakeRelations(const TensorFile& file, std::uint64_t dim,
                                  const std::vector<std::string>& edge_types) {
  RHIZOME_ASSIGN_OR_RETURN(reciprocal_, IsReciprocal(file));
  if (kind_->relation_width == nullptr) {
    if (reciprocal_) {
      return Status::InvalidArgument(
          fmt::format("{} has no relations, so it cannot be reciprocal", kind_->name));
    }
    if (kind_->name == "dot" && !file.tensors.empty())
      return Status::InvalidArgument("dot has no weights, but the file has tensors");
    return Status::Ok();
  }
  relation_width_ = kind_->relation_width(dim);
  const auto found = file.tensors.find(kRelations);
  if (found == file.tensors.end() || file.tensors.size() != 1) {
    return Status::InvalidArgument(fmt::format("the file must have one tensor, {} [relations, {}]",
                                               kRelations, relation_width_));
  }
  const NamedTensor& tensor = found->second;
  const std::size_t rows_of_relation = reciprocal_ ? 2 : 1;
  if (tensor.shape.size() != 2 || tensor.shape[0] == 0 ||
      tensor.shape[0] % static_cast<std::int64_t>(rows_of_relation) != 0 ||
      tensor.shape[1] != static_cast<std::int64_t>(relation_width_)) {
    return Status::InvalidArgument(fmt::format(
        "tensor {} is [{}], but [{}relations, {}] is expected for rows of {} columns", kRelations,
        fmt::join(tensor.shape, ", "), reciprocal_ ? "2 x " : "", relation_width_, dim));
  }
  relation_count_ = static_cast<std::size_t>(tensor.shape[0]) / rows_of_relation;
  relations_ = tensor.values;
  if (const std::string* const names = FieldOf(file, kNamesField); names != nullptr)
    return TakeNames(*names, relation_count_, edge_types);
  if (relation_count_ <= std::max<std::size_t>(edge_types.size(), 1)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("the decoder has {} relations, but the store has {} edge types", relation_count_,
                  edge_types.size()));
}

Status LinkDecoder::TakeNames(const std::string& json, std::size_t relations,
                              const std::vector<std::string>& edge_types) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto is_text = [](const nlohmann::json& name) { return name.is_string(); };
  if (!parsed.is_array() || parsed.size() != relations ||
      !std::all_of(parsed.begin(), parsed.end(), is_text)) {
    return Status::InvalidArgument(
        fmt::format("the metadata field {} must be a JSON list of {} names, one for each relation",
                    kNamesField, relations));
  }
  named_ = true;
  for (const std::string& type : edge_types) {
    const auto found = std::find(parsed.begin(), parsed.end(), type);
    row_of_type_.push_back(found == parsed.end() ? -1 : found - parsed.begin());
  }
  return Status::Ok();
}

Status LinkDecoder::CheckType(TypeId type) const {
  if (relation_width_ == 0) return Status::Ok();
  if (named_) {
    if (type < row_of_type_.size() && row_of_type_[type] >= 0) return Status::Ok();
    return Status::InvalidArgument(
        fmt::format("the decoder has no relation for edge type {}", type));
  }
  if (relation_count_ == 1 || type < relation_count_) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("an edge has type {}, but the decoder has {} relations", type, relation_count_));
}

const float* LinkDecoder::RelationOf(TypeId type, bool inverse) const {
  if (relation_width_ == 0) return nullptr;
  std::size_t row = type;
  if (named_)
    row = static_cast<std::size_t>(row_of_type_[type]);
  else if (relation_count_ == 1)
    row = 0;
  return relations_.data() + (row + (inverse ? relation_count_ : 0)) * relation_width_;
}

QueryRows LinkDecoder::QueryOf(const float* given, TypeId type, EdgeEnd open) const {
  const bool inverse = reciprocal_ && open == EdgeEnd::kSrc &&
                       !RHIZOME_MUTANT("sources have the relation of destinations");
  return {.given = given,
          .relation = RelationOf(type, inverse),
          .open = inverse ? EdgeEnd::kDst : open};
}

}  // namespace internal
}  // namespace rhizome
