// usage: mpirun -n N rhizome_rank_chat ROUNDS PEER_TIMEOUT FOLDER
// A rank that exchanges random bytes of random lengths with all others, and compares what it
// receives with what it must receive. ROUNDS 0: endless. After it has communicated with all ranks,
// it writes its process id to the file FOLDER/RANK. It has the same exit codes as the command line.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <vector>

#include "storage/remote/rank_calls.h"
#include "tools/cli/cli.h"
#include "tools/cli/mpi_library.h"

namespace rhizome {
namespace {

using Bytes = std::vector<std::byte>;

/// Returns the bytes that `from` sends to `to` in a round: sometimes none, sometimes megabytes.
Bytes Sent(std::uint64_t round, std::uint32_t from, std::uint32_t to) {
  std::mt19937_64 random(round * 1'000'003 + from * 1009 + to);
  const std::size_t kind = random() % 16;
  Bytes bytes(kind == 0 ? 0 : kind == 1 ? random() % 3'000'000 : random() % 5000);
  std::uint64_t word = random();
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(word = word * 6364136223846793005 + 1);
  return bytes;
}

Status TalkWith(Transport& transport, std::uint32_t peer, std::uint64_t round) {
  const Bytes out = Sent(round, transport.rank(), peer);
  const Bytes expected = Sent(round, peer, transport.rank());
  Bytes in(expected.size()), echo(out.size());
  RHIZOME_ASSIGN_OR_RETURN(const auto ticket, transport.Ask(peer, Service::kEcho, out, echo));
  RHIZOME_RETURN_IF_ERROR(transport.Exchange(peer, out, in));
  RHIZOME_RETURN_IF_ERROR(transport.Wait(ticket));
  if (in != expected || echo != out)
    return Status::Corruption(fmt::format("other bytes came from rank {} than were sent", peer));
  return Status::Ok();
}

Status Chat(Transport& transport, std::uint64_t rounds, const std::string& folder) {
  RHIZOME_RETURN_IF_ERROR(transport.Serve(
      Service::kEcho, [](std::uint32_t, std::span<const std::byte> request, Bytes& reply) {
        reply.assign(request.begin(), request.end());
        return Status::Ok();
      }));
  for (std::uint64_t round = 0; rounds == 0 || round < rounds; ++round) {
    for (std::uint32_t peer = 0; peer < transport.ranks(); ++peer)
      RHIZOME_RETURN_IF_ERROR(TalkWith(transport, peer, round));
    if (round == 1) std::ofstream(folder + "/" + std::to_string(transport.rank())) << getpid();
  }
  return Barrier(transport);
}

int Run(std::uint64_t rounds, double peer_timeout, const std::string& folder) {
  Status status;
  if (const auto transport = OpenRanks(peer_timeout); transport) {
    status = Chat(**transport, rounds, folder);
    if (!status.ok()) (*transport)->Leave(status);
  } else {
    status = transport.error();
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return ExitCode(status.code());
}

}  // namespace
}  // namespace rhizome

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  return rhizome::EndProcess(
      rhizome::Run(std::strtoull(argv[1], nullptr, 10), std::strtod(argv[2], nullptr), argv[3]));
}
