#pragma once

#include <string_view>
#include <vector>

#include "gnn/links/decoder.h"

namespace rhizome {
inline namespace internal {

/// Returns all kinds of decoders, in the order of the list in decoder_registry.cc.
const std::vector<const DecoderKind*>& DecoderKinds();

/// Returns the kind with that name. Errors: kInvalidArgument, there is none; the message lists all
/// kinds.
Result<const DecoderKind*> FindDecoderKind(std::string_view name);

}  // namespace internal
}  // namespace rhizome
