#pragma once

namespace rhizome::testing {

/// Whether a sanitizer watches this process whose runtime takes locks of its own in every
/// allocation and allocates the stacks of threads itself. A child that was forked while another
/// thread held such a lock waits for it for ever (LLVM until 17), whatever the library does.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Whether it is the thread sanitizer, with which a child that was forked beside other threads may
/// start none.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif
#else
inline constexpr bool kThreadSanitized = false;
#endif

}  // namespace rhizome::testing
