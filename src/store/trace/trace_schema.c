/* trace_schema.c: the tables of a trace in the layout of Nsight Systems. */
#include "store/trace/trace_schema.h"

/* clang-format off */
const char lab_trace_schema[] =
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ("
    " start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,"
    " shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,"
    " registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,"
    " gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,"
    " blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,"
    " dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,"
    " localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER,"
    " graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ("
    " start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL,"
    " deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER,"
    " srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER,"
    " graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET ("
    " start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " graphNodeId INTEGER, memKind INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME ("
    " start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,"
    " globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,"
    " returnValue INTEGER NOT NULL, callchainId INTEGER);"
    "CREATE TABLE NVTX_EVENTS ("
    " start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,"
    " category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER,"
    " textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER,"
    " doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL,"
    " jsonTextId INTEGER, jsonText TEXT);"
    "CREATE TABLE TARGET_INFO_GPU ("
    " vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER,"
    " l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER,"
    " smCount INTEGER, pwGpuId INTEGER, uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER,"
    " computeMajor INTEGER, computeMinor INTEGER, smMajor INTEGER, smMinor INTEGER);"
    "CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);"
    "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
    "CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER NOT NULL, duration INTEGER NOT NULL,"
    " startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL);"
    "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
    "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES"
    " (0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'),"
    " (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'),"
    " (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'),"
    " (3, 'CUDA_MEMCPY_KIND_HTOA', 'Host-to-Array'),"
    " (4, 'CUDA_MEMCPY_KIND_ATOH', 'Array-to-Host'),"
    " (5, 'CUDA_MEMCPY_KIND_ATOA', 'Array-to-Array'),"
    " (6, 'CUDA_MEMCPY_KIND_ATOD', 'Array-to-Device'),"
    " (7, 'CUDA_MEMCPY_KIND_DTOA', 'Device-to-Array'),"
    " (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'),"
    " (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'),"
    " (10, 'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer');"
    "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
    "INSERT INTO ENUM_CUDA_MEM_KIND VALUES"
    " (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),"
    " (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'),"
    " (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'),"
    " (3, 'CUDA_MEMOPR_MEMORY_KIND_ARRAY', 'Array'),"
    " (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'),"
    " (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static'),"
    " (6, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC', 'Managed Static'),"
    " (7, 'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN', 'Unknown');"
    "CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
    "INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES"
    " (59, 'NvtxPushPopRange', NULL), (60, 'NvtxStartEndRange', NULL);";

const char *const lab_trace_inserts[TRACE_INSERT_COUNT] = {
    [TRACE_INSERT_STRING] = "INSERT INTO StringIds (id, value) VALUES (?, ?)",
    [TRACE_INSERT_KERNEL] =
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL"
        " (start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid,"
        " graphNodeId, demangledName, shortName, mangledName, registersPerThread, gridX, gridY,"
        " gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory,"
        " localMemoryPerThread, localMemoryTotal, gridId)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)",
    [TRACE_INSERT_COPY] =
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY"
        " (start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid,"
        " graphNodeId, bytes, copyKind, srcKind, dstKind, copyCount)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
    [TRACE_INSERT_FILL] =
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET"
        " (start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid,"
        " graphNodeId, value, bytes, memKind)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [TRACE_INSERT_CALL] =
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME"
        " (start, end, eventClass, globalTid, correlationId, nameId, returnValue)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
    [TRACE_INSERT_RANGE] =
        "INSERT INTO NVTX_EVENTS (start, end, eventType, rangeId, text, globalTid, domainId)"
        " VALUES (?, ?, ?, ?, ?, ?, 0)",
    [TRACE_INSERT_GPU] =
        "INSERT INTO TARGET_INFO_GPU"
        " (vmId, id, name, busLocation, isDiscrete, totalMemory, memoryBandwidth, smCount, uuid,"
        " cuDevice, computeMajor, computeMinor, smMajor, smMinor)"
        " VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?1, ?9, ?10, ?9, ?10)",
    [TRACE_INSERT_NOTE] = "INSERT INTO META_DATA_EXPORT (name, value) VALUES (?, ?)",
    [TRACE_INSERT_PROCESS] = "INSERT INTO PROCESSES (globalPid, pid, name) VALUES (?, ?, ?)",
    [TRACE_INSERT_SPAN] =
        "INSERT INTO ANALYSIS_DETAILS (globalVid, duration, startTime, stopTime)"
        " VALUES (0, ?, ?, ?)",
};
/* clang-format on */
