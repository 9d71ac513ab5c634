#include "index/links/link_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "index/input/npy.h"
#include "index/input/table_reader.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The positions of the columns of edges, and how many columns there are.
struct LinkColumns {
  std::size_t count = 0;
  std::size_t src = 0;
  std::size_t dst = 1;
  std::optional<std::size_t> type = {};
};

Result<LinkColumns> ColumnsOf(const std::vector<std::string>& roles) {
  LinkColumns columns{.count = roles.size()};
  const auto find = [&](std::string_view role) -> std::optional<std::size_t> {
    const auto found = std::find(roles.begin(), roles.end(), role);
    if (found == roles.end()) return std::nullopt;
    return static_cast<std::size_t>(found - roles.begin());
  };
  const auto src = find("src");
  const auto dst = find("dst");
  if (!src || !dst) {
    return Fail(Status::InvalidArgument(
        fmt::format("columns {} have no src or no dst", fmt::join(roles, ","))));
  }
  columns.src = *src;
  columns.dst = *dst;
  columns.type = find("type");
  return columns;
}

/// How a text file of edges is read.
struct LinkText {
  TextDialect dialect;
  bool header = false;
  LinkColumns columns;
};

/// The lines that may be bad, over all files of a reader.
struct BadLines {
  std::uint64_t max = 0;
  std::shared_ptr<std::uint64_t> count;

  /// Counts a bad line; returns `why` with its place if there are too many.
  Status Skip(const Status& why, const std::string& place) const {
    return ++*count > max ? why.WithContext(place) : Status::Ok();
  }
};

/// Edges of a text file.
class TextLinks {
 public:
  TextLinks(const GraphSnapshot& graph, std::unique_ptr<TableReader> reader, LinkColumns columns,
            BadLines bad_lines)
      : graph_(graph),
        reader_(std::move(reader)),
        columns_(columns),
        bad_lines_(std::move(bad_lines)) {}

  Result<std::size_t> Next(std::span<VertexPair> out) {
    std::size_t count = 0;
    while (count < out.size()) {
      RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader_->ReadLine());
      if (next == TableReader::Next::kEnd) break;
      const Status taken = next == TableReader::Next::kMalformed
                               ? Status::InvalidArgument(reader_->reason())
                               : Take(reader_->fields(), out[count]);
      if (taken.ok())
        ++count;
      else
        RHIZOME_RETURN_IF_ERROR(bad_lines_.Skip(taken, reader_->Place()));
    }
    return count;
  }

 private:
  Status Take(std::span<const std::string_view> fields, VertexPair& edge) const {
    if (fields.size() != columns_.count) {
      return Status::InvalidArgument(
          fmt::format("{} fields, but there are {} columns", fields.size(), columns_.count));
    }
    RHIZOME_ASSIGN_OR_RETURN(edge.src, graph_.FindText(fields[columns_.src]));
    RHIZOME_ASSIGN_OR_RETURN(edge.dst, graph_.FindText(fields[columns_.dst]));
    edge.type = 0;
    if (!columns_.type) return Status::Ok();
    const auto found = std::find(types_.begin(), types_.end(), fields[*columns_.type]);
    if (found == types_.end()) {
      return Status::NotFound(
          fmt::format("the store has no edge type '{}'", fields[*columns_.type]));
    }
    edge.type = static_cast<TypeId>(found - types_.begin());
    return Status::Ok();
  }

  const GraphSnapshot& graph_;
  const std::vector<std::string> types_ = graph_.edge_types();
  const std::unique_ptr<TableReader> reader_;
  const LinkColumns columns_;
  const BadLines bad_lines_;
};

/// Rows of integers of a .npy file.
class NpyRows {
 public:
  explicit NpyRows(std::unique_ptr<NpyReader> reader) : reader_(std::move(reader)) {}

  std::uint64_t dim() const { return reader_->header().dim(); }
  std::string Place(std::size_t row) const {
    return fmt::format("{}, row {}", reader_->stream().path().string(), taken_ + row);
  }
  void Advance(std::size_t rows) { taken_ += rows; }

  /// Returns up to `rows` rows.
  Result<std::span<const std::int64_t>> Next(std::size_t rows) {
    const std::uint64_t count = std::min<std::uint64_t>(rows, reader_->header().rows() - taken_);
    numbers_.resize(count * dim());
    RHIZOME_RETURN_IF_ERROR(reader_->Read(std::as_writable_bytes(std::span(numbers_))));
    if (count < rows) RHIZOME_RETURN_IF_ERROR(reader_->Finish());
    return std::span<const std::int64_t>(numbers_);
  }

 private:
  std::unique_ptr<NpyReader> reader_;
  std::uint64_t taken_ = 0;
  std::vector<std::int64_t> numbers_;
};

Result<std::shared_ptr<NpyRows>> OpenRows(const std::string& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto reader, NpyReader::Open(FileSystem::Posix(), path));
  if (reader->header().dtype != DataType::kInt64) {
    return Fail(Status::InvalidArgument(
        fmt::format("{}: numbers of edges and vertices must be int64", path)));
  }
  return std::make_shared<NpyRows>(std::move(reader));
}

/// Edges of a .npy file.
class NpyLinks {
 public:
  NpyLinks(const GraphSnapshot& graph, std::shared_ptr<NpyRows> rows, LinkColumns columns,
           BadLines bad_lines)
      : graph_(graph),
        rows_(std::move(rows)),
        columns_(columns),
        bad_lines_(std::move(bad_lines)) {}

  Result<std::size_t> Next(std::span<VertexPair> out) {
    std::size_t count = 0;
    while (count < out.size()) {
      RHIZOME_ASSIGN_OR_RETURN(const auto numbers, rows_->Next(out.size() - count));
      const std::size_t rows = numbers.size() / columns_.count;
      if (rows == 0) break;
      for (std::size_t i = 0; i < rows; ++i) {
        const Status taken = Take(numbers.subspan(i * columns_.count, columns_.count), out[count]);
        if (taken.ok())
          ++count;
        else
          RHIZOME_RETURN_IF_ERROR(bad_lines_.Skip(taken, rows_->Place(i)));
      }
      rows_->Advance(rows);
    }
    return count;
  }

 private:
  Status Take(std::span<const std::int64_t> row, VertexPair& edge) const {
    RHIZOME_ASSIGN_OR_RETURN(edge.src, graph_.Find(ExternalId(row[columns_.src])));
    RHIZOME_ASSIGN_OR_RETURN(edge.dst, graph_.Find(ExternalId(row[columns_.dst])));
    const std::int64_t type = columns_.type ? row[*columns_.type] : 0;
    if (type < 0 || static_cast<std::uint64_t>(type) >= types_) {
      return Status::NotFound(
          fmt::format("the store has no edge type {}, only {} of them", type, types_));
    }
    edge.type = static_cast<TypeId>(type);
    return Status::Ok();
  }

  const GraphSnapshot& graph_;
  const std::size_t types_ = graph_.edge_types().size();
  const std::shared_ptr<NpyRows> rows_;
  const LinkColumns columns_;
  const BadLines bad_lines_;
};

template <typename Links>
PairSource SourceOfLinks(std::shared_ptr<Links> links) {
  return [links](std::span<VertexPair> out) { return links->Next(out); };
}

/// Returns the roles of columns without names: the column of types has names of edge types.
std::vector<std::string> RolesByTypes(std::span<const std::string_view> fields,
                                      const std::vector<std::string>& types) {
  if (fields.size() < 3) return {"src", "dst"};
  const auto is_type = [&](std::string_view field) {
    return std::find(types.begin(), types.end(), field) != types.end();
  };
  std::vector<std::string> roles = {"src", "dst", "type"};
  if (is_type(fields[1]) && !is_type(fields[2])) roles = {"src", "type", "dst"};
  roles.resize(fields.size(), "-");
  return roles;
}

/// Finds the dialect and the columns of a file. A header names the columns; without one, the first
/// line is compared with the edge types of the store.
Result<LinkText> PlanLinks(const std::string& path, const std::vector<std::string>& columns,
                           const std::vector<std::string>& types) {
  FileSystem& fs = FileSystem::Posix();
  IngestOptions options;
  options.edges = {Path(path)};
  options.columns = columns;
  const auto sniffed = Sniff(fs, options);
  if (!sniffed && !columns.empty()) return Fail(sniffed.error());
  LinkText text{.dialect = DialectOf(TableFormOf(path)), .header = false, .columns = {}};
  if (sniffed) {
    const FilePlan& plan = sniffed->edges.front();
    text.dialect = plan.dialect;
    text.header = plan.header;
    if (plan.header || !columns.empty()) {
      std::vector<std::string> roles;
      for (const ColumnPlan& column : plan.columns) roles.push_back(column.role);
      RHIZOME_ASSIGN_OR_RETURN(text.columns, ColumnsOf(roles));
      return text;
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::OpenOnce(fs, path));
  RHIZOME_ASSIGN_OR_RETURN(const auto reader,
                           TableReader::Open(std::move(stream), text.dialect, /*header=*/false));
  RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next first, reader->ReadLine());
  if (first != TableReader::Next::kFields || reader->fields().size() < 2)
    return Fail(Status::InvalidArgument(fmt::format("{}: it has no edges", path)));
  RHIZOME_ASSIGN_OR_RETURN(text.columns, ColumnsOf(RolesByTypes(reader->fields(), types)));
  return text;
}

/// Checks that a file names the types of edges if the store has several.
Status CheckTypes(const std::string& path, const LinkColumns& columns, std::size_t types) {
  if (columns.type || types < 2) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{}: the store has {} edge types, but the file has no column `type`; name its "
                  "columns by `columns`",
                  path, types));
}

}  // namespace

Result<PairSource> LinkFiles::Open(const std::string& path) const {
  if (ContentExtension(path) == ".npy") return OpenNpy(path);
  const std::vector<std::string> types = graph_.edge_types();
  LinkText text;
  if (InputStream::IsReadOnce(path)) {
    // A pipe cannot be read twice, so nothing is found in it.
    text.dialect = DialectOf(TableFormOf(path));
    const std::vector<std::string> usual = {"src", "dst", "type"};
    RHIZOME_ASSIGN_OR_RETURN(
        text.columns, ColumnsOf(!options_.columns.empty() ? options_.columns
                                : types.size() > 1        ? usual
                                                   : std::vector<std::string>{"src", "dst"}));
  } else {
    RHIZOME_ASSIGN_OR_RETURN(text, PlanLinks(path, options_.columns, types));
  }
  RHIZOME_RETURN_IF_ERROR(CheckTypes(path, text.columns, types.size()));
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::OpenOnce(FileSystem::Posix(), path));
  RHIZOME_ASSIGN_OR_RETURN(auto reader,
                           TableReader::Open(std::move(stream), text.dialect, text.header));
  return SourceOfLinks(std::make_shared<TextLinks>(graph_, std::move(reader), text.columns,
                                                   BadLines{options_.max_bad_lines, bad_lines_}));
}

Result<PairSource> LinkFiles::OpenNpy(const std::string& path) const {
  RHIZOME_ASSIGN_OR_RETURN(std::shared_ptr<NpyRows> rows, OpenRows(path));
  std::vector<std::string> roles = options_.columns;
  if (roles.empty()) roles = {"src", "dst", "type"};
  if (options_.columns.empty() && rows->dim() == 2) roles.pop_back();
  if (roles.size() != rows->dim()) {
    return Fail(Status::InvalidArgument(
        fmt::format("{}: edges must be int64 of shape [m, 2] or [m, 3], but it has {} columns",
                    path, rows->dim())));
  }
  RHIZOME_ASSIGN_OR_RETURN(const LinkColumns columns, ColumnsOf(roles));
  RHIZOME_RETURN_IF_ERROR(CheckTypes(path, columns, graph_.edge_types().size()));
  return SourceOfLinks(std::make_shared<NpyLinks>(graph_, std::move(rows), columns,
                                                  BadLines{options_.max_bad_lines, bad_lines_}));
}

namespace {

/// Ids of a text file, line by line.
class TextVertices {
 public:
  static Result<std::shared_ptr<TextVertices>> Open(const GraphSnapshot& graph,
                                                    const std::string& path) {
    RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::OpenOnce(FileSystem::Posix(), path));
    RHIZOME_ASSIGN_OR_RETURN(
        auto reader, TableReader::Open(std::move(stream), TableFormOf(path), /*header=*/false));
    auto vertices = std::make_shared<TextVertices>(graph, std::move(reader));
    RHIZOME_RETURN_IF_ERROR(vertices->ReadLine());
    vertices->per_line_ = vertices->line_.size();
    return vertices;
  }
  TextVertices(const GraphSnapshot& graph, std::unique_ptr<TableReader> reader)
      : graph_(graph), reader_(std::move(reader)) {}

  std::uint64_t per_line() const { return per_line_; }

  Result<std::size_t> Next(std::span<VertexId> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (next_ == line_.size()) RHIZOME_RETURN_IF_ERROR(ReadLine());
      if (line_.empty()) return i;
      out[i] = line_[next_++];
    }
    return out.size();
  }

 private:
  Status ReadLine() {
    line_.clear();
    next_ = 0;
    RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader_->ReadLine());
    if (next == TableReader::Next::kEnd) return Status::Ok();
    if (next == TableReader::Next::kMalformed)
      return Status::InvalidArgument(reader_->reason()).WithContext(reader_->Place());
    for (const std::string_view field : reader_->fields()) {
      const auto vertex = graph_.FindText(field);
      if (!vertex) return vertex.error().WithContext(reader_->Place());
      line_.push_back(*vertex);
    }
    if (per_line_ == 0 || line_.size() == per_line_) return Status::Ok();
    return Status::InvalidArgument(
               fmt::format("{} ids, but the first line has {}", line_.size(), per_line_))
        .WithContext(reader_->Place());
  }

  const GraphSnapshot& graph_;
  const std::unique_ptr<TableReader> reader_;
  std::uint64_t per_line_ = 0;
  std::vector<VertexId> line_;
  std::size_t next_ = 0;
};

/// Ids of a .npy file, row by row.
class NpyVertices {
 public:
  NpyVertices(const GraphSnapshot& graph, std::shared_ptr<NpyRows> rows)
      : graph_(graph), rows_(std::move(rows)) {}

  Result<std::size_t> Next(std::span<VertexId> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (next_ == row_.size()) {
        RHIZOME_ASSIGN_OR_RETURN(row_, rows_->Next(1));
        next_ = 0;
        if (row_.empty()) return i;
        rows_->Advance(1);
      }
      const auto vertex = graph_.Find(ExternalId(row_[next_++]));
      if (!vertex) return Fail(vertex.error().WithContext(rows_->Place(0)));
      out[i] = *vertex;
    }
    return out.size();
  }

 private:
  const GraphSnapshot& graph_;
  const std::shared_ptr<NpyRows> rows_;
  std::span<const std::int64_t> row_;
  std::size_t next_ = 0;
};

template <typename Vertices>
VertexSource SourceOfVertices(std::shared_ptr<Vertices> vertices) {
  return [vertices](std::span<VertexId> out) { return vertices->Next(out); };
}

}  // namespace

Result<std::vector<VertexPair>> ReadLinks(const GraphSnapshot& graph, const Path& path) {
  const LinkFiles files(graph, {});
  RHIZOME_ASSIGN_OR_RETURN(const PairSource source, files.Open(path.string()));
  std::vector<VertexPair> edges;
  std::vector<VertexPair> block(4096);
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, source(block));
    edges.insert(edges.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < block.size()) return edges;
  }
}

Result<VertexFile> OpenVertices(const GraphSnapshot& graph, const std::string& path) {
  if (ContentExtension(path) == ".npy") {
    RHIZOME_ASSIGN_OR_RETURN(std::shared_ptr<NpyRows> rows, OpenRows(path));
    const std::uint64_t per_line = rows->dim();
    return VertexFile{SourceOfVertices(std::make_shared<NpyVertices>(graph, std::move(rows))),
                      per_line};
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto vertices, TextVertices::Open(graph, path));
  if (vertices->per_line() == 0)
    return Fail(Status::InvalidArgument(fmt::format("{}: it has no ids", path)));
  return VertexFile{SourceOfVertices(vertices), vertices->per_line()};
}

}  // namespace internal
}  // namespace rhizome
