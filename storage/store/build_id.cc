#include "rhizome/storage/build_id.h"

#include "rhizome/storage/this_build.h"

namespace rhizome {

std::string_view BuildId() { return kThisBuild; }

}  // namespace rhizome
