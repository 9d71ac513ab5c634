#pragma once

// The id of the build to which a source file belongs. RHIZOME_VERSION is defined only for the two
// files that include this header: one of librhizome, one of librhizome_gnn.

#define RHIZOME_TEXT_OF(x) #x
#define RHIZOME_TEXT(x) RHIZOME_TEXT_OF(x)

#if defined(__clang__)
#define RHIZOME_BUILD_COMPILER "clang " __clang_version__
#else
#define RHIZOME_BUILD_COMPILER "gcc " __VERSION__
#endif

#ifdef NDEBUG
#define RHIZOME_BUILD_ASSERTIONS ""
#else
#define RHIZOME_BUILD_ASSERTIONS ", assertions"
#endif

#ifdef RHIZOME_SANITIZED
#define RHIZOME_BUILD_SANITIZED ", sanitized"
#else
#define RHIZOME_BUILD_SANITIZED ""
#endif

// A library that is loaded at run time would bring a second engine beside this one.
#ifdef RHIZOME_STATIC
#define RHIZOME_BUILD_LINKAGE ", static"
#else
#define RHIZOME_BUILD_LINKAGE ""
#endif

namespace rhizome {
inline namespace internal {

inline constexpr const char* kThisBuild =
    RHIZOME_VERSION ", " RHIZOME_BUILD_COMPILER
                    ", C++ " RHIZOME_TEXT(__cplusplus) ", ABI " RHIZOME_TEXT(__GXX_ABI_VERSION)
                        RHIZOME_BUILD_ASSERTIONS RHIZOME_BUILD_SANITIZED RHIZOME_BUILD_LINKAGE;

}  // namespace internal
}  // namespace rhizome
