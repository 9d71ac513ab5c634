#include "gnn/links/decoder_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

// The list of all kinds of decoders. A file decoder_<name>.cc defines a kind, by a function
// <Name>DecoderKind() for the name in this list. A new kind must be added here.
#define RHIZOME_DECODER_KINDS(KIND) \
  KIND(Dot)                         \
  KIND(DistMult)                    \
  KIND(ComplEx)                     \
  KIND(TransE)                      \
  KIND(RotatE)                      \
  KIND(Mlp)

namespace rhizome {
inline namespace internal {

#define RHIZOME_DECLARE_DECODER(Name) const DecoderKind& Name##DecoderKind();
RHIZOME_DECODER_KINDS(RHIZOME_DECLARE_DECODER)

const std::vector<const DecoderKind*>& DecoderKinds() {
#define RHIZOME_ADDRESS_OF_DECODER(Name) &Name##DecoderKind(),
  static const std::vector<const DecoderKind*> kinds = {
      RHIZOME_DECODER_KINDS(RHIZOME_ADDRESS_OF_DECODER)};
  return kinds;
}

Result<const DecoderKind*> FindDecoderKind(std::string_view name) {
  std::vector<std::string> known;
  for (const DecoderKind* const kind : DecoderKinds()) {
    if (kind->name == name) return kind;
    known.push_back(kind->name);
  }
  return Fail(Status::InvalidArgument(fmt::format("there is no decoder '{}'; existing decoders: {}",
                                                  name, fmt::join(known, ", "))));
}

}  // namespace internal
}  // namespace rhizome
