/* libnvidia_ml_script.c: reads the fake machine's script (fake_nvml.h). */
#include "fake/fake_nvml.h"

#include <unistd.h>

struct fake_script fake_script;

static const char *const key_names[FAKE_KEY_COUNT] = {
#define NAME(key, fallback) #key,
    FAKE_VALUES(NAME)
#undef NAME
};

static char complaint[256];

static const char *complain(const char *what, const char *text) {
    snprintf(complaint, sizeof complaint, "%s: '%s'", what, text);
    return complaint;
}

static void set_defaults(struct fake_script *script) {
    static const double fallbacks[] = {
#define FALLBACK(key, fallback) fallback,
        FAKE_VALUES(FALLBACK)
#undef FALLBACK
    };
    memset(script, 0, sizeof *script);
    script->gpus = 1;
    script->driver = 580;
    script->wrap_bits = 64;
    snprintf(script->name, sizeof script->name, "NVIDIA Fake 90");
    for (int gpu = 0; gpu < FAKE_GPUS_MAX; gpu++) {
        for (int key = 0; key < FAKE_KEY_COUNT; key++)
            script->values[gpu][key].low = fallbacks[key];
    }
}

/* --- one value --- */

static const char *read_steps(const char *text, struct fake_value *value) {
    double number, from_s;
    int length;
    value->kind = FAKE_STEPS;
    for (const char *at = text; *at && value->step_count < FAKE_STEPS_MAX;) {
        if (sscanf(at, "%lf@%lf%n", &number, &from_s, &length) != 2)
            return complain("no steps", text);
        value->steps[value->step_count].value = number;
        value->steps[value->step_count++].from_s = from_s;
        at += length;
        at += *at == ':';
    }
    return NULL;
}

static const char *read_value(const char *text, struct fake_value *ret_value) {
    struct fake_value value = {0};
    char *end;
    if (strcmp(text, "-") == 0)
        value.kind = FAKE_ABSENT;
    else if (strcmp(text, "?") == 0)
        value.kind = FAKE_NONSENSE;
    else if (strchr(text, '@')) {
        const char *wrong = read_steps(text, &value);
        if (wrong)
            return wrong;
    } else if (strchr(text, '~')) {
        value.kind = FAKE_WAVE;
        if (sscanf(text, "%lf~%lf/%lf", &value.low, &value.high, &value.period_s) != 3 ||
            value.period_s <= 0)
            return complain("no wave", text);
    } else {
        value.low = strtod(text, &end); /* 0x4 too */
        if (end == text || *end)
            return complain("no number", text);
    }
    *ret_value = value;
    return NULL;
}

/* --- lists --- */

static const char *read_process(struct fake_script *script, const char *text) {
    struct fake_process *process = &script->processes[script->process_count];
    char where[16] = "", pid[16] = "";
    *process = (struct fake_process){.instance = -1, .kind = 'C'};
    if (sscanf(text, "%15[^:]:%15[^:]:%lf:%lf:%c", where, pid, &process->memory_mib,
               &process->sm_percent, &process->kind) < 3 ||
        sscanf(where, "%d.%d", &process->gpu, &process->instance) < 1)
        return complain("no process", text);
    process->pid = strcmp(pid, "self") == 0       ? (unsigned)getpid()
                   : strcmp(pid, "parent") == 0   ? (unsigned)getppid()
                   : strcmp(pid, "children") == 0 ? FAKE_CHILDREN
                   : strcmp(pid, "leaves") == 0   ? FAKE_LEAVES
                                                  : (unsigned)strtoul(pid, NULL, 10);
    script->process_count++;
    return NULL;
}

static const char *read_xid(struct fake_script *script, const char *text) {
    struct fake_xid *xid = &script->xids[script->xid_count];
    if (sscanf(text, "%d:%u@%lf", &xid->gpu, &xid->code, &xid->at_s) != 3)
        return complain("no Xid", text);
    xid->relative = strstr(text, "@+") != NULL;
    script->xid_count++;
    return NULL;
}

static const char *read_away(struct fake_script *script, const char *text, bool unlisted) {
    struct fake_away *away = &script->away[script->away_count];
    const char *until = strstr(text, "..");
    *away = (struct fake_away){.unlisted = unlisted, .until_s = INFINITY};
    if (sscanf(text, "%d@%lf", &away->gpu, &away->from_s) != 2)
        return complain("not GPU@FROM..UNTIL", text);
    if (until)
        away->until_s = strtod(until + 2, NULL);
    script->away_count++;
    return NULL;
}

static const char *read_fault(struct fake_script *script, const char *text, bool hang) {
    struct fake_fault *fault = &script->faults[script->fault_count];
    const char *call = strchr(text, '@'), *gpu = strchr(text, '/');
    double number;
    *fault = (struct fake_fault){.gpu = -1, .from = 1, .times = hang};
    if (sscanf(text, "%63[^:]:%lf", fault->function, &number) != 2)
        return complain("not FUNCTION:NUMBER", text);
    if (hang)
        fault->hang_s = number;
    else
        fault->code = (int)number;
    if ((call && sscanf(call, "@%dx%d", &fault->from, &fault->times) < 1) ||
        (gpu && sscanf(gpu, "/%d", &fault->gpu) != 1))
        return complain("not …@CALLxTIMES/GPU", text);
    script->fault_count++;
    return NULL;
}

static const char *read_mig(struct fake_script *script, const char *text) {
    int gpu, count;
    if (sscanf(text, "%d:%d", &gpu, &count) != 2 || gpu < 0 || gpu >= FAKE_GPUS_MAX || count < 0 ||
        count > FAKE_MIG_MAX)
        return complain("not GPU:INSTANCES", text);
    script->mig[gpu] = count;
    return NULL;
}

static const char *read_garbage(struct fake_script *script, const char *text) {
    int gpu = (int)strtol(text, NULL, 10);
    if (gpu < 0 || gpu >= FAKE_GPUS_MAX)
        return complain("no GPU", text);
    for (int key = 0; key < FAKE_KEY_COUNT; key++)
        if (key != FAKE_gpm && key != FAKE_node)
            script->values[gpu][key].kind = FAKE_NONSENSE;
    return NULL;
}

/* One member of a list; NULL = fine. `index` = its place. */
static const char *read_member(struct fake_script *script, const char *key, int index,
                               const char *text) {
    if (script->process_count == FAKE_LIST_MAX || script->xid_count == FAKE_LIST_MAX ||
        script->away_count == FAKE_LIST_MAX || script->fault_count == FAKE_LIST_MAX)
        return complain("too many", key);
    if (strcmp(key, "process") == 0)
        return read_process(script, text);
    if (strcmp(key, "xid") == 0)
        return read_xid(script, text);
    if (strcmp(key, "lost") == 0 || strcmp(key, "gone") == 0)
        return read_away(script, text, *key == 'g');
    if (strcmp(key, "fail") == 0 || strcmp(key, "hang") == 0)
        return read_fault(script, text, *key == 'h');
    if (strcmp(key, "mig") == 0)
        return read_mig(script, text);
    if (strcmp(key, "garbage") == 0)
        return read_garbage(script, text);
    for (int i = 0; i < FAKE_KEY_COUNT; i++) {
        if (strcmp(key, key_names[i]) != 0)
            continue;
        struct fake_value value;
        const char *wrong = read_value(text, &value);
        for (int gpu = index; !wrong && gpu < FAKE_GPUS_MAX; gpu++)
            script->values[gpu][i] = value;
        return wrong;
    }
    return complain("no such key", key);
}

/* --- statements --- */

static const char *read_statement(struct fake_script *script, const char *key, char *text) {
    int number = (int)strtol(text, NULL, 10);
    if (strcmp(key, "gpus") == 0) {
        script->gpus = number;
        return number >= 0 && number <= FAKE_GPUS_MAX ? NULL : complain("0 to 16 GPUs", text);
    }
    if (strcmp(key, "name") == 0)
        snprintf(script->name, sizeof script->name, "%s", text);
    else if (strcmp(key, "missing") == 0)
        snprintf(script->missing, sizeof script->missing, ",%s,", text);
    else if (strcmp(key, "driver") == 0)
        script->driver = number;
    else if (strcmp(key, "wrap") == 0)
        script->wrap_bits = number;
    else if (strcmp(key, "seed") == 0)
        script->seed = number;
    else if (strcmp(key, "storm") == 0)
        script->storm = number;
    else {
        char *rest = NULL;
        int index = 0;
        for (char *word = strtok_r(text, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
            const char *wrong = read_member(script, key, index++, word);
            if (wrong)
                return wrong;
        }
    }
    return NULL;
}

static char *trim(char *text) {
    text += strspn(text, " \t\r\n");
    for (size_t length = strlen(text); length && strchr(" \t\r\n", text[length - 1]); length--)
        text[length - 1] = '\0';
    return text;
}

static const char *read_statements(char *text, struct fake_script *script) {
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n;", &rest); line; line = strtok_r(NULL, "\n;", &rest)) {
        line[strcspn(line, "#")] = '\0';
        line = trim(line);
        char *equals = strchr(line, '=');
        if (!*line)
            continue;
        if (!equals)
            return complain("not key=value", line);
        *equals = '\0';
        const char *wrong = read_statement(script, trim(line), trim(equals + 1));
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* Eight GPUs in two halves: six train in step, one serves, one idles. */
static const char demo[] =
    "gpus=8; name=NVIDIA H200; memory_total=143771; node=0,0,0,0,1,1,1,1\n"
    "memory=118200~118900/40,117900~118700/41,118100~118800/39,118000~118900/42,"
    "117800~118500/40,118300~119000/43,41200~78400/75,612\n"
    "reserved=618\n"
    "utilization=92~100/9,91~100/10,92~100/9,90~100/11,88~99/10,91~100/9,12~78/23,0\n"
    "memory_utilization=48~71/9,47~70/10,48~72/9,46~70/11,44~68/10,47~71/9,6~38/23,0\n"
    "power=560~698/14,555~695/15,562~699/13,550~690/16,520~640/15,558~697/14,150~420/23,74\n"
    "power_limit=700\n"
    "temperature=58~66/60,57~65/61,59~67/62,56~64/63,71~83/64,58~66/65,41~52/66,29\n"
    "memory_temperature=66~74/60,65~73/61,67~75/62,64~72/63,80~92/64,66~74/65,47~58/66,35\n"
    "fan=-\n"
    "sm_clock=1860~1980/11,1860~1980/12,1860~1980/13,1860~1980/11,1410~1755/12,1860~1980/13,"
    "1740~1980/23,345\n"
    "memory_clock=3201\n"
    "reasons=0@0:4@20:0@32:4@55:0@70,0@0:4@25:0@31,0,0@0:4@40:0@52,36,0,0,1\n"
    "pstate=0,0,0,0,0,0,0,8\n"
    "graphics=93~100/9,92~100/10,93~100/9,91~100/11,90~99/10,92~100/9,12~78/23,0\n"
    "sm=84~95/9,83~95/10,84~95/9,82~94/11,80~93/10,83~95/9,9~61/23,0\n"
    "occupancy=31~44/9,30~44/10,31~45/9,30~43/11,29~42/10,31~44/9,4~22/23,0\n"
    "tensor=52~68/9,51~68/10,52~69/9,50~67/11,46~61/10,51~68/9,5~34/23,0\n"
    "dram=41~63/9,40~63/10,41~64/9,40~62/11,38~59/10,41~63/9,5~29/23,0\n"
    "fp32=6~11/9,6~11/9,6~11/9,6~11/9,5~10/9,6~11/9,1~6/23,0\n"
    "fp16=2~5/9,2~5/9,2~5/9,2~5/9,2~4/9,2~5/9,0~3/23,0\n"
    "integer=9~15/9,9~15/9,9~15/9,9~15/9,8~13/9,9~15/9,2~9/23,0\n"
    "pcie_tx=310~960/8,300~950/8,305~955/8,300~940/8,290~900/8,300~950/8,120~2400/23,0\n"
    "pcie_rx=900~5200/8,880~5100/8,890~5150/8,880~5100/8,860~4900/8,890~5150/8,300~3900/23,0\n"
    "nvlink_tx=40000~182000/9,39000~181000/10,40000~182000/9,39000~180000/11,37000~170000/10,"
    "40000~181000/9,0,0\n"
    "nvlink_rx=40000~182000/9,39000~181000/10,40000~182000/9,39000~180000/11,37000~170000/10,"
    "40000~181000/9,0,0\n"
    "held_power=0@0:100@20:0@32:100@55:0@70,0@0:100@25:0@31,0,0@0:100@40:0@52,100,0,0,0\n"
    "held_thermal=0,0,0,0,100,0,0,0\n"
    "ecc_corrected=0,0,0,2,0,0,0,0\n"
    "process=0:parent:118200:93:C,1:parent:117900:92:C,2:parent:118100:93:C,3:parent:118000:91:C,"
    "4:parent:117800:89:C,5:parent:118300:92:C,6:self:40600:44:C\n";

static const char *read_file(const char *path, struct fake_script *script) {
    char text[16384];
    FILE *file = fopen(path, "re");
    if (!file)
        return complain("can't be read", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return read_statements(text, script);
}

const char *fake_script_read(const char *text, struct fake_script *script) {
    char copy[16384];
    set_defaults(script);
    if (!text || !*text)
        return NULL;
    script->scripted = true;
    if (strcmp(text, "demo") != 0 && !strchr(text, '='))
        return read_file(text, script);
    snprintf(copy, sizeof copy, "%s", strcmp(text, "demo") == 0 ? demo : text);
    return read_statements(copy, script);
}
