#include "tools/cli/engine_linkage.h"

#include <fmt/format.h>

namespace rhizome {
namespace {

#ifdef RHIZOME_STATIC
constexpr bool kStatic = true;
#else
constexpr bool kStatic = false;
#endif

}  // namespace

Status CheckSharesEngine(std::string_view library) {
  if (!kStatic) return Status::Ok();
  return Status::Unsupported(
      fmt::format("this rhizome is linked statically, and {} needs the shared librhizome: build "
                  "rhizome without BUILD_SHARED_LIBS=OFF",
                  library));
}

}  // namespace rhizome
