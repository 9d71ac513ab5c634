#pragma once

#include "cuda/elements.cuh"

// Gather and scatter of rows by number. A warp copies a row, and each lane moves one word of the
// widest possible access, so that a row is read in whole memory transactions. The alignment of
// sizes and addresses determines the width of an access.

namespace rhizome::cuda {

/// Returns the row that position i reads, and in `target` the row that it writes. If one of them is
/// out of range, returns -1 and records the position in first_bad.
RZ_DEVICE std::int64_t RowAt(const GatherArgsOf<Mem>& args, std::size_t i, std::int64_t& target) {
  const std::int64_t row =
      args.rows == nullptr ? static_cast<std::int64_t>(i) : std::int64_t{args.rows[i]};
  target = args.place == nullptr || RZ_MUTANT("gather: places are ignored")
               ? static_cast<std::int64_t>(i)
               : std::int64_t{args.place[i]};
  const std::uint64_t rows = args.table_rows + (RZ_MUTANT("gather: row check off by one") ? 1 : 0);
  const bool signed_check = RZ_MUTANT("gather: negative rows pass");
  const bool row_fits =
      signed_check ? row < static_cast<std::int64_t>(rows) : static_cast<std::uint64_t>(row) < rows;
  if (row_fits && static_cast<std::uint64_t>(target) < args.out_rows) return row;
  if (Lane() == 0) {
    if (RZ_MUTANT("gather: the flag is written plainly")) {
      args.first_bad[0] = static_cast<std::uint32_t>(i);
    } else {
      AtomicMin(args.first_bad + 0, static_cast<std::uint32_t>(i));
    }
  }
  return -1;
}

/// Number of words that a lane loads before it writes the first of them.
constexpr unsigned kWordsAhead = 4;

template <typename Word>
RZ_KERNEL CopyRows(GatherArgsOf<Mem> args) {
  const std::size_t words = args.row_bytes / sizeof(Word);
  const std::size_t step = RZ_MUTANT("gather: warps step by threads") ? GridThreads() : GridWarps();
  const std::size_t last = args.count + (RZ_MUTANT("gather: one position too many") ? 1 : 0);
  for (std::size_t i = GridWarp(); i < last; i += step) {
    std::int64_t target;
    const std::int64_t row = RowAt(args, i, target);
    if (row < 0) continue;
    const Mem<const Word> from =
        Cast<const Word>(args.table + static_cast<std::size_t>(row) * args.table_stride_bytes);
    const Mem<Word> to = Cast<Word>(
        args.out + static_cast<std::size_t>(target) *
                       (RZ_MUTANT("gather: rows of the output are dense") ? args.row_bytes
                                                                          : args.out_stride_bytes));
    const std::size_t end = words - (RZ_MUTANT("gather: the last word is left out") ? 1 : 0);
    for (std::size_t first = Lane(); first < end; first += kWordsAhead * kWarp) {
      Word held[kWordsAhead];
      RZ_UNROLL
      for (unsigned k = 0; k < kWordsAhead; ++k) {
        if (first + k * kWarp < end) held[k] = from[first + k * kWarp];
      }
      RZ_UNROLL
      for (unsigned k = 0; k < kWordsAhead; ++k) {
        if (first + k * kWarp < end) to[first + k * kWarp] = held[k];
      }
    }
  }
}

/// Reads 2-byte elements and writes float32: eight elements per lane if kWide, else one.
template <typename T, bool kWide>
RZ_KERNEL WidenRows(GatherArgsOf<Mem> args) {
  const std::size_t columns = args.row_bytes / sizeof(T);
  for (std::size_t i = GridWarp(); i < args.count; i += GridWarps()) {
    std::int64_t target;
    const std::int64_t row = RowAt(args, i, target);
    if (row < 0) continue;
    const Mem<const unsigned char> from =
        args.table + static_cast<std::size_t>(row) * args.table_stride_bytes;
    const Mem<unsigned char> to =
        args.out + static_cast<std::size_t>(target) * args.out_stride_bytes;
    if constexpr (kWide) {
      for (std::size_t word = Lane(); word < columns / 8; word += kWarp) {
        const Word16 packed = Cast<const Word16>(from)[word];
        float wide[8];
        for (int k = 0; k < 8; ++k) {
          const std::uint32_t pair = packed.part[k / 2];
          wide[k] =
              Widened(T{static_cast<std::uint16_t>(k % 2 == 0 ? pair & 0xFFFFU : pair >> 16)});
        }
        struct alignas(16) Four {
          float part[4];
        };
        Cast<Four>(to)[2 * word] = Four{{wide[0], wide[1], wide[2], wide[3]}};
        Cast<Four>(to)[2 * word + 1] = Four{{wide[4], wide[5], wide[6], wide[7]}};
      }
    } else {
      for (std::size_t c = Lane(); c < columns; c += kWarp) {
        const T value = Cast<const T>(from)[c];
        Cast<float>(to)[c] = Widened(value);
      }
    }
  }
}

/// Returns whether all strides, sizes and addresses are multiples of `bytes`. `address` is the
/// bitwise OR of the addresses of table and output.
template <template <typename> class Memory>
bool Divisible(const GatherArgsOf<Memory>& args, std::uint64_t address, std::size_t bytes) {
  return (address | args.row_bytes | args.table_stride_bytes | args.out_stride_bytes) % bytes == 0;
}

inline void LaunchCopyRows(Stream stream, const GatherArgsOf<Mem>& args, std::uint64_t address,
                           const Geometry& geometry = {}) {
  if (args.count == 0 || args.row_bytes == 0) return;
  const std::size_t blocks = geometry.BlocksFor(std::size_t{args.count} * kWarp);
  if (Divisible(args, address, 16) || RZ_MUTANT("gather: all rows are aligned")) {
    RZ_LAUNCH(CopyRows<Word16>, blocks, geometry.block, stream, args);
  } else if (Divisible(args, address, 4)) {
    RZ_LAUNCH(CopyRows<std::uint32_t>, blocks, geometry.block, stream, args);
  } else if (Divisible(args, address, 2)) {
    RZ_LAUNCH(CopyRows<std::uint16_t>, blocks, geometry.block, stream, args);
  } else {
    RZ_LAUNCH(CopyRows<unsigned char>, blocks, geometry.block, stream, args);
  }
}

template <typename T>
void LaunchWiden(Stream stream, const GatherArgsOf<Mem>& args, std::uint64_t address,
                 const Geometry& geometry) {
  const std::size_t blocks = geometry.BlocksFor(std::size_t{args.count} * kWarp);
  const auto wide = WidenRows<T, true>;
  const auto narrow = WidenRows<T, false>;
  if (Divisible(args, address, 16)) {
    RZ_LAUNCH(wide, blocks, geometry.block, stream, args);
  } else {
    RZ_LAUNCH(narrow, blocks, geometry.block, stream, args);
  }
}

/// Gathers rows of float16 or bfloat16 as float32; table and output are aligned to their elements.
inline void LaunchWidenRows(Stream stream, Element type, const GatherArgsOf<Mem>& args,
                            std::uint64_t address, const Geometry& geometry = {}) {
  if (args.count == 0 || args.row_bytes == 0) return;
  if (type == Element::kFloat16) {
    LaunchWiden<Half>(stream, args, address, geometry);
  } else {
    LaunchWiden<Bfloat>(stream, args, address, geometry);
  }
}

}  // namespace rhizome::cuda
