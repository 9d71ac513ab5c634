#include "index/input/npy.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>

#include "index/input/convert.h"
#include "storage/base/half.h"
#include "testing/compressed.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Builds a header as an independent writer would.
std::string Header(int version, std::string dict) {
  std::string out("\x93NUMPY", 6);
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    out += static_cast<char>(dict.size() >> (8 * i) & 0xFF);
  return out + dict;
}

std::string Dict(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

TEST(NpyTest, HeadersOfAllVersionsAndTypesAreParsed) {
  const std::vector<std::pair<std::string, DataType>> types = {
      {"<f4", DataType::kFloat32}, {"<f2", DataType::kFloat16},  {"<i8", DataType::kInt64},
      {"<i4", DataType::kInt32},   {"<u4", DataType::kUint32},   {"|u1", DataType::kUint8},
      {"|b1", DataType::kBool},    {"|i1", DataType::kInt8},     {"<i2", DataType::kInt16},
      {"<f8", DataType::kFloat64}, {"<V2", DataType::kBfloat16}, {"|V2", DataType::kBfloat16},
      {"<u8", DataType::kInt64}};
  for (int version = 1; version <= 3; ++version) {
    for (const auto& [descr, dtype] : types) {
      const std::string bytes = Header(version, Dict(descr, "(5, 7)"));
      const auto header = ParseNpyHeader(Bytes(bytes + "data"));
      ASSERT_OK(header);
      EXPECT_EQ(header->dtype, dtype);
      EXPECT_EQ(header->shape, (std::vector<std::uint64_t>{5, 7}));
      EXPECT_EQ(header->data_offset, bytes.size());
      EXPECT_EQ(header->dim(), 7U);
    }
  }
}

TEST(NpyTest, LooseSpellingsAreAccepted) {
  for (const std::string dict : {
           "{\"shape\":(3,),'fortran_order':False,'descr':'<f4'}",
           " { 'shape' : ( 3L , ) , 'descr' : \"<f4\" , 'fortran_order' : False , } \n",
       }) {
    const auto header = ParseNpyHeader(Bytes(Header(1, dict)));
    ASSERT_OK(header);
    EXPECT_EQ(header->rows(), 3U);
    EXPECT_EQ(header->dim(), 1U);
  }
}

TEST(NpyTest, BadHeadersAreRefusedWithTheReason) {
  const auto reason = [](const std::string& bytes) {
    const auto header = ParseNpyHeader(Bytes(bytes));
    EXPECT_STATUS(header, kInvalidArgument);
    return header ? std::string() : header.error().message();
  };
  EXPECT_NE(reason("PK\x03\x04 not npy").find("not a .npy"), std::string::npos);
  EXPECT_NE(reason("").find("not a .npy"), std::string::npos);
  EXPECT_NE(reason(std::string("\x93NUMPY\x01", 7)).find("truncated"), std::string::npos);
  EXPECT_NE(reason(Header(4, Dict("<f4", "(1,)"))).find("version 4"), std::string::npos);
  for (const char* descr : {"<f1", ">f4", "<u2", "<U5", "|O", "<c8", "<M8[ns]", "<V4"})
    EXPECT_NE(reason(Header(1, Dict(descr, "(1, 1)"))).find(descr), std::string::npos);
  EXPECT_NE(reason(Header(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"))
                .find("structured"),
            std::string::npos);
  EXPECT_NE(
      reason(Header(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}")).find("Fortran"),
      std::string::npos);
  for (const char* shape : {"()", "(1, 2, 3)", "(99999999999, 99999999999)", "(-1, 2)", "3", "(1",
                            "(18446744073709551616,)", "(4611686018427387904, 4)"})
    EXPECT_FALSE(reason(Header(1, Dict("<f4", shape))).empty()) << shape;
  for (const char* dict :
       {"", "{", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'descr': '<f4'}",
        "{'descr' '<f4'}", "{'descr': '<f4}", "{'color': 'red'}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}"})
    EXPECT_FALSE(reason(Header(1, dict)).empty()) << dict;
  std::string huge = Header(2, "");
  huge[8] = huge[9] = huge[10] = '\x7f';
  EXPECT_NE(reason(huge).find("the .npy header has "), std::string::npos);
}

// Arbitrary bytes yield a header or an error, and a header only if the shape is plausible.
TEST(NpyTest, MutatedHeadersNeverCrash) {
  std::mt19937_64 random(testing::TestSeed());
  const std::string good = Header(1, Dict("<f4", "(12, 34)"));
  std::size_t accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good.substr(0, 1 + random() % good.size());
    if (random() % 2 == 0) bytes = good;
    for (std::uint64_t i = random() % 4; i > 0; --i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto header = ParseNpyHeader(Bytes(bytes));
    if (!header) continue;
    ++accepted;
    EXPECT_LE(header->shape.size(), 2U);
    EXPECT_LE(header->data_offset, bytes.size());
  }
  EXPECT_GT(accepted, 0U);
}

TEST(NpyTest, WhatIsWrittenIsReadBack) {
  testing::TempDir dir;
  const std::vector<std::int64_t> values = {1, -2, 3, 4, 5, 6};
  auto writer = NpyWriter::Create(dir / "a.npy", DataType::kInt64, 3, 2);
  ASSERT_OK(writer);
  ASSERT_OK(writer->Append(std::as_bytes(std::span(values).first(1))));
  EXPECT_STATUS(writer->Commit(), kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(dir / "a.npy"));
  ASSERT_OK(writer->Append(std::as_bytes(std::span(values).subspan(1))));
  EXPECT_STATUS(writer->Append(Bytes("x")), kInvalidArgument);
  ASSERT_OK(writer->Commit());

  std::ifstream file(dir / "a.npy", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ((all.size() - 48) % 64, 0U);
  for (const char* name : {"b.npy", "b.npy.gz", "b.npy.zst"}) {
    testing::WriteInput(dir / name, all);
    auto reader = NpyReader::Open(FileSystem::Posix(), dir / name);
    ASSERT_OK(reader);
    EXPECT_EQ((*reader)->header().shape, (std::vector<std::uint64_t>{3, 2}));
    EXPECT_EQ((*reader)->data_bytes(), 48U);
    std::vector<std::int64_t> read(6);
    ASSERT_OK((*reader)->Read(std::as_writable_bytes(std::span(read))));
    ASSERT_OK((*reader)->Finish());
    EXPECT_EQ(read, values);
  }
}

// The expected bytes are the output of numpy.save for arange(3, dtype='<i4').
TEST(NpyTest, HeaderIsThatOfNumPy) {
  const std::array<std::uint64_t, 1> shape = {3};
  const auto bytes = EncodeNpyHeader(DataType::kInt32, shape);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string expected("\x93NUMPY\x01\x00v\x00", 10);
  expected += "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
  expected.resize(127, ' ');
  EXPECT_EQ(text, expected + "\n");
}

TEST(NpyTest, Uint64IsReadIfItsValuesFit) {
  testing::TempDir dir;
  const std::string header = Header(1, Dict("<u8", "(2, 2)"));
  std::array<std::uint64_t, 4> values = {0, 7, INT64_MAX, 1};
  const auto write = [&] {
    testing::WriteInput(dir / "u.npy",
                        header + std::string(reinterpret_cast<const char*>(values.data()), 32));
    return NpyReader::Open(FileSystem::Posix(), dir / "u.npy");
  };
  auto reader = write();
  ASSERT_OK(reader);
  std::array<std::int64_t, 4> read{};
  ASSERT_OK((*reader)->Read(std::as_writable_bytes(std::span(read))));
  EXPECT_EQ(read, (std::array<std::int64_t, 4>{0, 7, INT64_MAX, 1}));
  values[2] = std::uint64_t{1} << 63;
  reader = write();
  ASSERT_OK(reader);
  ASSERT_OK((*reader)->Read(std::as_writable_bytes(std::span(read).first(2))));
  const Status refused = (*reader)->Read(std::as_writable_bytes(std::span(read).first(2)));
  EXPECT_STATUS(refused, kInvalidArgument);
  EXPECT_NE(refused.message().find("row 1, column 0: 9223372036854775808"), std::string::npos)
      << refused.message();
}

TEST(NpyTest, TruncatedDataNamesExpectedAndFoundBytes) {
  testing::TempDir dir;
  const std::string header = Header(1, Dict("<f4", "(10, 2)"));
  testing::WriteInput(dir / "t.npy", header + std::string(70, 'x'));
  auto reader = NpyReader::Open(FileSystem::Posix(), dir / "t.npy");
  ASSERT_OK(reader);
  std::vector<std::byte> data(80);
  const Status status = (*reader)->Read(data);
  EXPECT_STATUS(status, kInvalidArgument);
  EXPECT_NE(status.message().find("80 bytes"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("70 found"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("t.npy"), std::string::npos);

  testing::WriteInput(dir / "l.npy", header + std::string(81, 'x'));
  auto longer = NpyReader::Open(FileSystem::Posix(), dir / "l.npy");
  ASSERT_OK(longer);
  ASSERT_OK((*longer)->Read(data));
  EXPECT_STATUS((*longer)->Finish(), kInvalidArgument);
  for (std::size_t length = 0; length < header.size(); ++length) {
    testing::WriteInput(dir / "h.npy", header.substr(0, length));
    EXPECT_STATUS(NpyReader::Open(FileSystem::Posix(), dir / "h.npy"), kInvalidArgument);
  }
}

// Every half is unchanged by a conversion to float and back. Floats are rounded to the nearest
// half, ties to even.
TEST(HalfTest, RoundTripIsExactAndRoundingIsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
    else
      ASSERT_EQ(FloatToHalf(value), half) << bits;
  }
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = HalfToFloat(static_cast<std::uint16_t>(bits));
    const float high = HalfToFloat(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact
    ASSERT_EQ(FloatToHalf(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, low)), bits);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, high)), bits + 1);
  }
  EXPECT_EQ(HalfToFloat(0x3C00), 1.0F);
  EXPECT_EQ(HalfToFloat(0xC000), -2.0F);
  EXPECT_EQ(FloatToHalf(65519.0F), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0F), 0x7C00);
  EXPECT_EQ(FloatToHalf(-1e30F), 0xFC00);
}

template <typename From, typename To>
std::optional<std::size_t> Convert(DataType from, std::vector<From> in, DataType to,
                                   std::vector<To>& out) {
  out.resize(in.size());
  return ConvertElements(from, std::as_bytes(std::span(in)), to,
                         std::as_writable_bytes(std::span(out)));
}

TEST(ConvertTest, ValuesThatFitAreKeptAndOthersAreFound) {
  EXPECT_FALSE(CanConvert(DataType::kFloat32, DataType::kInt64));
  EXPECT_TRUE(CanConvert(DataType::kInt64, DataType::kFloat16));
  std::vector<float> floats;
  EXPECT_FALSE(Convert<std::int64_t>(DataType::kInt64, {-5, 1 << 24}, DataType::kFloat32, floats));
  EXPECT_EQ(floats, (std::vector<float>{-5, 16777216}));
  EXPECT_EQ(Convert<std::int64_t>(DataType::kInt64, {1, (1 << 24) + 1}, DataType::kFloat32, floats),
            1U);
  std::vector<std::uint8_t> bytes;
  EXPECT_FALSE(Convert<std::int32_t>(DataType::kInt32, {0, 255}, DataType::kUint8, bytes));
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 255}));
  EXPECT_EQ(Convert<std::int32_t>(DataType::kInt32, {0, 256}, DataType::kUint8, bytes), 1U);
  EXPECT_EQ(Convert<std::int64_t>(DataType::kInt64, {-1}, DataType::kUint8, bytes), 0U);
  std::vector<std::uint16_t> halves;
  EXPECT_FALSE(Convert<float>(DataType::kFloat32, {1.0F, INFINITY}, DataType::kFloat16, halves));
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{0x3C00, 0x7C00}));
  EXPECT_EQ(Convert<float>(DataType::kFloat32, {1e6F}, DataType::kFloat16, halves), 0U);
  std::vector<std::int64_t> wide;
  EXPECT_FALSE(Convert<std::uint32_t>(DataType::kUint32, {4294967295U}, DataType::kInt64, wide));
  EXPECT_EQ(wide[0], 4294967295);
  std::vector<std::int32_t> narrow;
  EXPECT_EQ(Convert<std::uint32_t>(DataType::kUint32, {4294967295U}, DataType::kInt32, narrow), 0U);
}

}  // namespace
}  // namespace rhizome
