/* A stand-in for NVIDIA's NVML: answers from a text file, named by NVML_RECORDING. Function names, signatures and error numbers are
 * those of the NVML API reference. Lines of the file, fields separated by blanks:
 *   init ERROR                                        answer of nvmlInit
 *   driver VERSION
 *   gpu UUID PCI MEMORY USED UTILIZATION MIG ERROR NAME   a GPU; MIG is 1, 0, or -1 where it cannot; ERROR for every question
 *   mig UUID GI CI MEMORY ERROR NAME                  an instance in the next slot of the GPU above
 *   gap                                               an empty slot
 *   process PID USED                                  a process on the GPU or instance above
 *   pidfile PATH USED                                 likewise, by the number in a file, once it is there
 *   nvlink PCI COUNT                                  so many links of the GPU above lead there
 *   sensors MILLIWATTS CELSIUS                        of the GPU above
 *   ecc COUNT                                         uncorrectable errors of the GPU above
 *   rows PENDING FAILED                               remapped rows of its memory
 *   recovery ACTION                                   what the driver wants to be done to it
 * NAME runs to the end of the line. Memory is in bytes. The file is read at every nvmlInit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, SMALL = 7 };
#define MAX 128

typedef struct unit {
  int kind; /* 0 GPU, 1 instance, 2 gap */
  int error, mig, gi, ci, parent, utilization;
  unsigned milliwatts, celsius, ecc, pending, failed, recovery;
  char uuid[96], pci[32], name[96];
  unsigned long long memory, used;
  int processes, links;
  char ends[36][32];
  char pidfile[256];
  unsigned pids[16];
  unsigned long long held[16];
} unit;

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci_info;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_info;

static unit units[MAX];
static int count, init_error;
static char driver[80];

static void line_of(char *line) {
  unit *u = &units[count];
  int at = 0;
  memset(u, 0, sizeof *u);
  if (sscanf(line, "init %d", &init_error) == 1 || sscanf(line, "driver %79s", driver) == 1) return;
  if (sscanf(line, "gpu %95s %31s %llu %llu %d %d %d %n", u->uuid, u->pci, &u->memory, &u->used, &u->utilization, &u->mig, &u->error, &at) == 7) {
    u->parent = count;
  } else if (sscanf(line, "mig %95s %d %d %llu %d %n", u->uuid, &u->gi, &u->ci, &u->memory, &u->error, &at) == 5) {
    u->kind = 1;
    u->parent = units[count - 1].parent;
  } else if (strncmp(line, "gap", 3) == 0) {
    u->kind = 2;
    u->parent = units[count - 1].parent;
  } else {
    unit *last = count ? &units[count - 1] : NULL;
    char end[32];
    int more;
    if (last && sscanf(line, "nvlink %31s %d", end, &more) == 2)
      while (more-- > 0 && last->links < 36) strcpy(last->ends[last->links++], end);
    if (!last || sscanf(line, "sensors %u %u", &last->milliwatts, &last->celsius) == 2) return;
    if (sscanf(line, "ecc %u", &last->ecc) == 1 || sscanf(line, "rows %u %u", &last->pending, &last->failed) == 2) return;
    if (sscanf(line, "recovery %u", &last->recovery) == 1) return;
    if (sscanf(line, "process %u %llu", &last->pids[last->processes], &last->held[last->processes]) == 2) last->processes++;
    if (sscanf(line, "pidfile %255s %llu", last->pidfile, &last->held[0]) == 2) last->processes = 0;
    return;
  }
  snprintf(u->name, sizeof u->name, "%s", line + at);
  u->name[strcspn(u->name, "\n")] = 0;
  count++;
}

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  char line[512];
  FILE *file = fopen(getenv("NVML_RECORDING") ? getenv("NVML_RECORDING") : "", "r");
  count = init_error = 0;
  if (!file) return 9; /* the driver is not loaded */
  while (count < MAX && fgets(line, sizeof line, file)) line_of(line);
  fclose(file);
  return init_error;
}

int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int code) {
  switch (code) {
  case NOT_SUPPORTED: return "Not Supported";
  case 4: return "Insufficient Permissions";
  case NOT_FOUND: return "Not Found";
  case 9: return "Driver Not Loaded";
  case 15: return "GPU is lost";
  case 18: return "Driver/library version mismatch";
  default: return "Unknown Error";
  }
}

static unit *nth(int kind, int parent, unsigned index) {
  for (int i = 0; i < count; i++)
    if ((kind ? units[i].kind > 0 && units[i].parent == parent : units[i].kind == 0) && index-- == 0) return &units[i];
  return NULL;
}

int nvmlSystemGetDriverVersion(char *text, unsigned length) { snprintf(text, length, "%s", driver); return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned *found) {
  for (*found = 0; nth(0, 0, *found); ++*found) {}
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, unit **handle) {
  unit *u = nth(0, 0, index);
  if (!u) return INVALID;
  *handle = u;
  return u->error;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, unit **handle) {
  for (int i = 0; i < count; i++)
    if (strcmp(units[i].uuid, uuid) == 0) { *handle = &units[i]; return units[i].error; }
  return NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, unit **handle) {
  for (int i = 0; i < count; i++)
    if (units[i].kind == 0 && strcasecmp(units[i].pci + 4, pci) == 0) { *handle = &units[i]; return units[i].error; }
  return NOT_FOUND;
}

int nvmlDeviceGetNvLinkState(unit *u, unsigned link, unsigned *active) {
  *active = (int)link < u->links;
  return u->links ? u->error : NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(unit *u, unsigned link, pci_info *info) {
  memset(info, 0, sizeof *info);
  snprintf(info->bus_id, sizeof info->bus_id, "%s", u->ends[link]);
  return u->error;
}

int nvmlDeviceGetUUID(unit *u, char *text, unsigned length) { snprintf(text, length, "%s", u->uuid); return u->error; }
int nvmlDeviceGetName(unit *u, char *text, unsigned length) { snprintf(text, length, "%s", u->name); return u->error; }
int nvmlDeviceGetSerial(unit *u, char *text, unsigned length) { snprintf(text, length, "132092000%04d", u->parent); return u->error; }
int nvmlDeviceGetDisplayActive(unit *u, unsigned *on) { *on = 0; return u->error; }
int nvmlDeviceGetDisplayMode(unit *u, unsigned *on) { *on = 1; return u->error; }

int nvmlDeviceGetPciInfo_v3(unit *u, pci_info *info) {
  memset(info, 0, sizeof *info);
  snprintf(info->bus_id, sizeof info->bus_id, "%s", u->pci);
  return u->error;
}

int nvmlDeviceGetMemoryInfo(unit *u, memory_info *info) {
  info->total = u->memory;
  info->used = u->used;
  info->free = u->memory - u->used;
  return u->error;
}

int nvmlDeviceGetUtilizationRates(unit *u, utilization *rates) {
  if (u->kind || u->mig == 1) return NOT_SUPPORTED; /* as the driver answers for MIG */
  rates->gpu = u->utilization;
  rates->memory = 0;
  return u->error;
}

int nvmlDeviceGetPowerUsage(unit *u, unsigned *milliwatts) {
  *milliwatts = u->milliwatts;
  return u->milliwatts ? u->error : NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(unit *u, int sensor, unsigned *celsius) {
  *celsius = u->celsius;
  return sensor == 0 && u->celsius ? u->error : NOT_SUPPORTED;
}

int nvmlDeviceGetTotalEccErrors(unit *u, int kind, int counter, unsigned long long *errors) {
  *errors = kind == 1 && counter == 0 ? u->ecc : 0; /* uncorrected, volatile */
  return u->error;
}

int nvmlDeviceGetRemappedRows(unit *u, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
  *corrected = *uncorrected = 0;
  *pending = u->pending;
  *failed = u->failed;
  return u->error;
}

typedef struct { unsigned id, scope; long long time, latency; int type, result; union { unsigned number; double real; } value; } field;

int nvmlDeviceGetFieldValues(unit *u, int n, field *fields) {
  for (int i = 0; i < n; i++) {
    fields[i].result = fields[i].id == 230 ? SUCCESS : NOT_SUPPORTED; /* NVML_FI_DEV_GET_GPU_RECOVERY_ACTION */
    fields[i].value.number = u->recovery;
  }
  return u->error;
}

int nvmlDeviceGetMigMode(unit *u, unsigned *now, unsigned *later) {
  if (u->mig < 0) return NOT_SUPPORTED;
  *now = *later = u->mig;
  return u->error;
}

int nvmlDeviceGetMaxMigDeviceCount(unit *u, unsigned *most) { *most = u->mig == 1 ? 7 : 0; return SUCCESS; }

int nvmlDeviceGetMigDeviceHandleByIndex(unit *gpu, unsigned slot, unit **handle) {
  unit *u = nth(1, gpu->parent, slot);
  if (!u || u->kind == 2) return NOT_FOUND;
  *handle = u;
  return u->error;
}

int nvmlDeviceGetGpuInstanceId(unit *u, unsigned *id) { *id = u->gi; return SUCCESS; }
int nvmlDeviceGetComputeInstanceId(unit *u, unsigned *id) { *id = u->ci; return SUCCESS; }

static void look_for_pid(unit *u) {
  FILE *file = u->pidfile[0] ? fopen(u->pidfile, "r") : NULL;
  if (!file) return;
  u->processes = fscanf(file, "%u", &u->pids[0]) == 1;
  fclose(file);
}

int nvmlDeviceGetComputeRunningProcesses_v3(unit *u, unsigned *room, process_info *infos) {
  look_for_pid(u);
  int fits = *room >= (unsigned)u->processes && infos;
  *room = u->processes;
  if (!u->processes) return SUCCESS;
  if (!fits) return SMALL;
  for (int i = 0; i < u->processes; i++) infos[i] = (process_info){u->pids[i], u->held[i], 0xFFFFFFFF, 0xFFFFFFFF};
  return SUCCESS;
}
