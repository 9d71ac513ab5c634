#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gnn/links/decoder.h"
#include "rhizome/file_system.h"
#include "rhizome/link_scores.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The decoder that LinkDecoder::Load reads.
struct DecoderChoice {
  std::string name;  ///< of a DecoderKind; empty: from the file, without a file `dot`
  Path path;         ///< safetensors: a decoder, or a model that has one; empty: none
};

/// A decoder and the rows of its relations, by the edge types of a store.
/// Threads: const functions from any number of threads.
class LinkDecoder {
 public:
  /// Loads a decoder for rows of `dim` columns. `edge_types` are the names of the store's edge
  /// types. docs/LINKS.md, "Decoders", describes the file.
  /// Errors: kNotFound, no such file; kInvalidArgument, the file does not fit the decoder, the rows
  /// or the store, naming the tensor or the field of its metadata; kIoError.
  static Result<LinkDecoder> Load(const DecoderChoice& choice, std::uint64_t dim,
                                  const std::vector<std::string>& edge_types);

  const DecoderKind& kind() const { return *kind_; }
  const PairDecoder& decoder() const { return *decoder_; }

  /// Returns whether scores depend on the edge type.
  bool has_types() const { return relation_width_ != 0 && (named_ || relation_count_ > 1); }

  /// Checks that edges of this type have scores. Errors: kInvalidArgument, naming the type.
  Status CheckType(TypeId type) const;

  /// Return the rows of an edge, and of an edge with an open end. If the decoder is reciprocal, a
  /// query for a source is a query for the destination of the inverse relation. `type` must pass
  /// CheckType.
  PairRows PairOf(const float* src, const float* dst, TypeId type) const {
    return {.src = src, .dst = dst, .relation = RelationOf(type, /*inverse=*/false)};
  }
  QueryRows QueryOf(const float* given, TypeId type, EdgeEnd open) const;

 private:
  LinkDecoder() = default;
  Status TakeRelations(const TensorFile& file, std::uint64_t dim,
                       const std::vector<std::string>& edge_types);
  Status TakeNames(const std::string& json, std::size_t relations,
                   const std::vector<std::string>& edge_types);
  const float* RelationOf(TypeId type, bool inverse) const;

  const DecoderKind* kind_ = nullptr;
  std::unique_ptr<const PairDecoder> decoder_;
  bool reciprocal_ = false;
  std::size_t relation_width_ = 0;  // 0: no relations
  std::size_t relation_count_ = 0;  // without inverse ones
  std::vector<float> relations_;    // [relation_count_, or twice as many, relation_width_]
  bool named_ = false;
  std::vector<std::int64_t> row_of_type_;  // if named_; -1: none
};

}  // namespace internal
}  // namespace rhizome
