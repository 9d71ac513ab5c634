#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {

/// The page docs/RESULTS.md, as Markdown.
struct ResultsPage {
  std::string text;
  std::size_t sections = 0;
};

/// Generates the page from the JSON files in `folder`. All texts are single lines of Markdown.
///
/// setup.json describes what all sections share:
///   title         heading of the page
///   introduction  its first paragraph
///   setup         list of texts: machine, graphs, how ratios are measured
///   studies       list of links to further pages
/// Every other *.json file is a section, the figures of one workload:
///   title     heading; links to the section are derived from it
///   order     integer that determines the position on the page; unique
///   commands  list: the commands that measure these figures
///   setup     what differs from the common setup; optional
///   columns   list of column headings
///   rows      list of one to six rows, each a list with a text for every column
///   notes     one or two sentences: what the figures show
///   measured  object: "date", such as "2026-11" or "2026-11-30", and optionally "commit"
///
/// Errors: kInvalidArgument, a file is not as described; the message names the file and the field.
/// kNotFound, there is no such folder or no setup.json. Errors of the file system.
Result<ResultsPage> MakeResultsPage(FileSystem& fs, const Path& folder);

/// Compares the page in the file `path` with the page generated from `folder`.
/// Returns OK if they are equal; else kInvalidArgument, and the message quotes the first line that
/// differs.
Status CompareResultsPages(const Path& path, std::string_view there, const Path& folder,
                           std::string_view generated);

}  // namespace rhizome
