#pragma once

namespace rhizome::testing {

/// Whether this process runs under a sanitizer whose runtime takes locks in every allocation and
/// allocates the stacks of threads itself. If another thread holds such a lock during a fork, the
/// child waits for it without end, and the library cannot prevent that (LLVM up to 17).
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

/// Whether it is the thread sanitizer. Under it, a child of a process with several threads cannot
/// start threads.
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
