rhizome_layer(index
  MODULES base topology partition homes input generation delta compact ids ingest graph links arrays sample check
  DESCRIPTION "graph, partitions, sampling, ingestion, updates"
  USES storage
  BATCH 8
  PRIVATE_LIBS TBB::tbb Boost::headers PkgConfig::ZSTD PkgConfig::LZMA ZLIB::ZLIB BZip2::BZip2 fmt::fmt
    nlohmann_json::nlohmann_json Threads::Threads)
foreach(module IN LISTS rhizome_index_modules)
  target_include_directories(${module} SYSTEM PRIVATE ${RANDOM123_INCLUDE} ${FAST_FLOAT_INCLUDE})
endforeach()
