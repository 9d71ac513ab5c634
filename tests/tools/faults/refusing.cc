// usage: rhizome_refusing COMMAND ARGUMENT...
// Runs a command under a seccomp filter that refuses what containers and file systems may refuse:
// io_uring (EPERM), openat2 (ENOSYS), and O_DIRECT, at opening and afterwards (EINVAL).
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <iterator>

namespace {

constexpr unsigned kRefuseUring = SECCOMP_RET_ERRNO | EPERM;
constexpr unsigned kRefuseOpenat2 = SECCOMP_RET_ERRNO | ENOSYS;
constexpr unsigned kRefuseDirect = SECCOMP_RET_ERRNO | EINVAL;

constexpr unsigned Argument(unsigned i) {
  return static_cast<unsigned>(offsetof(seccomp_data, args) + 8 * i);
}

bool Refuse() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefuseUring),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefuseOpenat2),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, Argument(2)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefuseDirect),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, Argument(1)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETFL, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, Argument(2)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefuseDirect),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {static_cast<unsigned short>(std::size(program)), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 64;
  if (!Refuse()) {
    std::perror("rhizome_refusing: seccomp");
    return 77;
  }
  execvp(arguments[1], arguments + 1);
  std::perror(arguments[1]);
  return 127;
}
