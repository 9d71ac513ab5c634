#include "storage/store/build_id.h"

#include "storage/store/this_build.h"

namespace rhizome {

std::string_view BuildId() { return kThisBuild; }

}  // namespace rhizome
