#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace rhizome::simulator {

/// A stack on which a function runs in alternation with its owner, on one thread of the system.
/// Threads: one. Ownership: owns its stack; objects on a stack that is dropped before its function
/// returns are not destroyed.
class Fiber {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{64} << 10;

  Fiber()
      : stack_(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0)) {
    if (stack_ == MAP_FAILED) std::abort();
  }
  ~Fiber() { munmap(stack_, kStackBytes); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

#if defined(__x86_64__)
  /// Makes the next Resume call `entry`, which must not return; its last call is Suspend.
  void Begin(void (*entry)()) {
    auto* top = reinterpret_cast<void**>(static_cast<char*>(stack_) + kStackBytes);
    *--top = nullptr;  // return address of `entry`
    *--top = reinterpret_cast<void*>(entry);
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
    self_ = top;
  }
  void Resume() { Switch(&owner_, self_); }
  void Suspend() { Switch(&self_, owner_); }

 private:
  /// Pushes the callee-saved registers on the current stack, stores its top, and pops the registers
  /// of another stack.
  [[gnu::naked, gnu::noinline]] static void Switch(void**, void*) {
    asm("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret");
  }

  void* stack_;
  void* self_ = nullptr;
  void* owner_ = nullptr;
#else
  void Begin(void (*entry)()) {
    getcontext(&self_);
    self_.uc_stack.ss_sp = stack_;
    self_.uc_stack.ss_size = kStackBytes;
    self_.uc_link = nullptr;
    makecontext(&self_, entry, 0);
  }
  void Resume() { swapcontext(&owner_, &self_); }
  void Suspend() { swapcontext(&self_, &owner_); }

 private:
  void* stack_;
  ucontext_t self_;
  ucontext_t owner_;
#endif
};

}  // namespace rhizome::simulator
