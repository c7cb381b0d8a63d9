/* command/meaning.c: what the words of a line mean where trainings print them, and their bytes. */
#include "workload/command/character.h"
#include "workload/command/line.h"

#include <string.h>
#include <strings.h>

const unsigned short command_classes[256] = {
    ['\0'] = AROUND_PATH,
    [' '] = SPACE | AROUND_PATH,
    ['\t'] = SPACE | AROUND_PATH,
    ['\n' ... '\r'] = SPACE,
    ['\''] = AROUND_PATH,
    ['"'] = AROUND_PATH,
    ['`'] = AROUND_PATH,
    ['('] = AROUND_PATH,
    ['['] = AROUND_PATH,
    [':'] = BEFORE_PATH,
    ['='] = BEFORE_PATH,
    [')'] = ENDS_PATH,
    [']'] = ENDS_PATH,
    [','] = ENDS_PATH,
    [';'] = ENDS_PATH,
    ['0' ... '9'] = DIGIT | NUMERIC,
    ['A' ... 'H'] = LETTER | WORD,
    ['I'] = LETTER | WORD | NUMERIC, /* Infinity */
    ['J' ... 'M'] = LETTER | WORD,
    ['N'] = LETTER | WORD | NUMERIC, /* NaN */
    ['O' ... 'Z'] = LETTER | WORD,
    ['a' ... 'h'] = LETTER | WORD,
    ['i'] = LETTER | WORD | NUMERIC,
    ['j' ... 'm'] = LETTER | WORD,
    ['n'] = LETTER | WORD | NUMERIC,
    ['o' ... 'z'] = LETTER | WORD,
    ['_'] = WORD | SPLITS,
    ['@'] = JOINS,
    ['/'] = JOINS | SPLITS,
    ['#'] = JOINS,
    ['.'] = JOINS | NUMERIC | SPLITS,
    ['-'] = JOINS | NUMERIC | SIGN | SPLITS,
    ['+'] = NUMERIC | SIGN,
    [0x80 ... 0xe1] = WORD,
    [0xe2] = 0, /* begins the characters that bars and frames are drawn with */
    [0xe3 ... 0xff] = WORD,
};

struct word {
    const char *text;
    unsigned char length;
    uint32_t meaning;
};

#define W(text, meaning)                                                                           \
    { text, sizeof(text) - 1, COMMAND_##meaning }
#define WORDS (const struct word[])

static const struct word *const words[26] = {
    ['a' - 'a'] = WORDS{W("acc", KNOWN),
                        W("accuracy", KNOWN),
                        W("auc", KNOWN),
                        W("acc1", KNOWN),
                        W("acc5", KNOWN),
                        W("acc@1", KNOWN),
                        W("acc@5", KNOWN),
                        W("at", PREPOSITION),
                        W("after", PREPOSITION),
                        W("and", PREPOSITION),
                        W("as", PREPOSITION),
                        W("are", IS),
                        W("args", CONFIG),
                        W("arguments", CONFIG),
                        {NULL}},
    ['b' - 'a'] =
        WORDS{W("batch", STEP), W("best", BEST), W("bleu", KNOWN), W("bpb", KNOWN), {NULL}},
    ['c' - 'a'] = WORDS{W("critical", LEVEL),
                        W("cer", KNOWN),
                        W("cv", EVALUATION),
                        W("cuda", PROSE),
                        W("coef", SETTING),
                        W("config", CONFIG),
                        W("cfg", CONFIG),
                        W("configuration", CONFIG),
                        {NULL}},
    ['d' - 'a'] = WORDS{W("debug", LEVEL), W("dice", KNOWN), W("dev", EVALUATION), {NULL}},
    ['e' - 'a'] = WORDS{W("epoch", EPOCH),
                        W("epochs", EPOCH),
                        W("error", LEVEL),
                        W("eval", EVALUATION),
                        W("evaluation", EVALUATION),
                        W("evaluating", EVALUATION),
                        W("evaluate", EVALUATION),
                        W("em", MARKED),
                        W("entropy", MARKED),
                        W("elbo", KNOWN),
                        W("every", SETTING),
                        W("episode", STEP),
                        W("eta", PROSE),
                        {NULL}},
    ['f' - 'a'] = WORDS{W("f1", KNOWN),
                        W("fid", KNOWN),
                        W("fn", SETTING),
                        W("factor", SETTING),
                        W("freq", SETTING),
                        W("frequency", SETTING),
                        W("function", SETTING),
                        W("functions", SETTING),
                        W("for", PREPOSITION),
                        W("from", PREPOSITION),
                        {NULL}},
    ['g' - 'a'] = WORDS{W("global_step", GLOBAL_STEP),
                        W("global_iter", GLOBAL_STEP),
                        W("global", GLOBAL),
                        W("gpu", PROSE),
                        {NULL}},
    ['h' - 'a'] = WORDS{W("hparams", CONFIG),
                        W("hyperparameters", CONFIG),
                        W("hellaswag", KNOWN),
                        W("highest", BEST),
                        {NULL}},
    ['i' - 'a'] = WORDS{W("iter", STEP),
                        W("iters", STEP),
                        W("iteration", STEP),
                        W("iterations", STEP),
                        W("iou", KNOWN),
                        W("in", PREPOSITION),
                        W("is", IS),
                        W("it", STEP),
                        W("interval", SETTING),
                        W("info", LEVEL),
                        {NULL}},
    ['k' - 'a'] = WORDS{W("kappa", MARKED), {NULL}},
    ['l' - 'a'] = WORDS{W("loss", KNOWN),
                        W("logloss", KNOWN),
                        W("learn", MARKED),
                        W("line", PROSE),
                        W("loaded", RESTORED),
                        W("lowest", BEST),
                        {NULL}},
    ['m' - 'a'] = WORDS{W("mfu", KNOWN),
                        W("mae", KNOWN),
                        W("mse", KNOWN),
                        W("minimum", BEST),
                        W("minibatch", STEP),
                        W("maximum", BEST),
                        W("miou", KNOWN),
                        W("mlogloss", KNOWN),
                        W("map50", KNOWN),
                        W("map", MARKED),
                        W("mcc", MARKED),
                        W("metrics", FOLDER),
                        W("mem", MEMORY),
                        W("memory", MEMORY),
                        {NULL}},
    ['n' - 'a'] = WORDS{W("nll", KNOWN),
                        W("node", PROSE),
                        W("n_iter", STEP),
                        W("num_updates", GLOBAL_STEP),
                        W("num_timesteps", STEP),
                        W("namespace", CONFIG),
                        {NULL}},
    ['o' - 'a'] = WORDS{W("of", OF),
                        W("on", PREPOSITION),
                        W("options", CONFIG),
                        W("opt_step", STEP),
                        W("optimizer_step", STEP),
                        {NULL}},
    ['p' - 'a'] = WORDS{W("ppl", KNOWN),
                        W("perplexity", KNOWN),
                        W("psnr", KNOWN),
                        W("prec@1", KNOWN),
                        W("prec@5", KNOWN),
                        W("prec1", KNOWN),
                        W("prec5", KNOWN),
                        W("prec", MARKED),
                        W("precision", MARKED),
                        W("port", PROSE),
                        W("pid", PROSE),
                        W("policy_step", STEP),
                        {NULL}},
    ['r' - 'a'] = WORDS{W("rmse", KNOWN),
                        W("reward", KNOWN),
                        W("rew", KNOWN),
                        W("r2", KNOWN),
                        W("recall", MARKED),
                        W("rank", PROSE),
                        W("remaining", PROSE),
                        W("reached", PREPOSITION),
                        W("restored", RESTORED),
                        W("restoring", RESTORED),
                        W("reloaded", RESTORED),
                        W("reloading", RESTORED),
                        W("resumed", RESTORED),
                        W("resuming", RESTORED),
                        {NULL}},
    ['s' - 'a'] = WORDS{W("step", STEP),
                        W("steps", STEP),
                        W("ssim", KNOWN),
                        W("so", PREPOSITION),
                        W("scale", SETTING),
                        W("scaler", SETTING),
                        W("score", MARKED),
                        W("sps", MARKED),
                        W("settings", CONFIG),
                        W("seed", PROSE),
                        W("saved", PROSE),
                        {NULL}},
    ['t' - 'a'] = WORDS{W("train_step", STEP),
                        W("train_iter", STEP),
                        W("top1", KNOWN),
                        W("top5", KNOWN),
                        W("throughput", KNOWN),
                        W("threshold", SETTING),
                        W("total_timesteps", STEP),
                        W("timesteps_total", STEP),
                        W("tick", STEP),
                        W("test", EVALUATION),
                        W("testing", EVALUATION),
                        W("train", TRAINING),
                        W("training", TRAINING),
                        W("to", PREPOSITION),
                        W("than", PREPOSITION),
                        W("the", PREPOSITION),
                        W("took", PREPOSITION),
                        {NULL}},
    ['u' - 'a'] =
        WORDS{W("use", SAYS), W("uses", SAYS), W("update", STEP), W("updates", STEP), {NULL}},
    ['v' - 'a'] = WORDS{W("val", EVALUATION),
                        W("valid", EVALUATION),
                        W("validation", EVALUATION),
                        W("validating", EVALUATION),
                        W("validate", EVALUATION),
                        W("version", PROSE),
                        W("v_num", PROSE),
                        W("vram", MEMORY),
                        {NULL}},
    ['w' - 'a'] = WORDS{W("wer", KNOWN),
                        W("with", PREPOSITION),
                        W("was", IS),
                        W("were", IS),
                        W("weight", SETTING),
                        W("weights", SETTING),
                        W("warning", LEVEL),
                        W("warn", LEVEL),
                        {NULL}},
};

/* In either case; letters of `word` are small. */
bool command_is_same(const char *word, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (word[i] != (is(text[i], LETTER) ? text[i] | 0x20 : text[i]))
            return false;
    return true;
}

unsigned command_meaning_look_up(const char *text, size_t length) {
    unsigned letter = (unsigned)(*text | 0x20) - 'a';
    const struct word *word = letter < 26 ? words[letter] : NULL;
    for (; word && word->text; word++)
        if (word->length == length && command_is_same(word->text, text, length))
            return word->meaning;
    bool loss =
        length > 6 && command_is_same("loss", text + length - 4, 4); /* "CrossEntropyLoss" */
    return loss && text[length - 5] != '_' ? COMMAND_KNOWN : 0;
}

/* "trainer.py:264": a line of a file, no value. */
static bool is_source(const char *text, size_t length) {
    static const char *const endings[] = {".py", ".c", ".cc", ".cpp", ".cu", ".rs", ".go", ".h"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && memcmp(text + length - ending, endings[i], ending) == 0)
            return true;
    }
    return false;
}

/* "saving", "computing"; not "training", "running loss". */
static bool is_doing(const char *text, size_t length) {
    static const char *const names[] = {"running", "remaining", "learning", "moving", "timing"};
    if (length < 5 || !command_is_same("ing", text + length - 3, 3) || memchr(text, '_', length))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && command_is_same(names[i], text, length))
            return false;
    return true;
}

unsigned command_word_meaning(const char *text, size_t length, bool split) {
    unsigned meaning = command_meaning_look_up(text, length), last;
    if (!meaning && is_doing(text, length))
        return COMMAND_SAYS;
    if (split && is_source(text, length))
        return COMMAND_PREPOSITION;
    if (meaning == COMMAND_LEVEL && is(text[1], LETTER) && text[1] & 0x20)
        meaning = 0; /* INFO, but "error" is a value's name */
    last = meaning;
    size_t part = 0, name = 0; /* where parts begin: behind '_', '/' or '.', and behind '_' */
    for (size_t i = 0; split && i <= length; i++) {
        if (i < length && !is(text[i], SPLITS))
            continue;
        if (i > part && i - part < length) {
            unsigned of_part = command_meaning_look_up(text + part, i - part);
            meaning |= of_part & (COMMAND_KNOWN | COMMAND_EVALUATION | COMMAND_TRAINING |
                                  COMMAND_MARKED | COMMAND_MEMORY);
            if (of_part & COMMAND_FOLDER && i < length && text[i] == '/')
                meaning |= COMMAND_KNOWN;
            if (of_part & COMMAND_SETTING) /* "loss_weight" */
                meaning &= ~(unsigned)(COMMAND_KNOWN | COMMAND_MARKED);
        }
        part = i + 1;
        if (i < length && text[i] == '_')
            name = i + 1;
    }
    const char *slash = split ? memrchr(text, '/', length) : NULL;
    unsigned counted =
        slash ? command_meaning_look_up(slash + 1, (size_t)(text + length - slash - 1)) : 0;
    if (counted & COMMAND_GLOBAL) /* "trainer/global_step" */
        return counted;
    if (name > 0 && !(meaning & (COMMAND_STEP | COMMAND_EPOCH)))
        last = name < length ? command_meaning_look_up(text + name, length - name) : 0;
    return meaning | (last & COMMAND_STEP ? COMMAND_STEP_LAST : 0) |
           (last & COMMAND_EPOCH ? COMMAND_EPOCH_LAST : 0);
}

bool command_is_memory(const char *name, size_t length) {
    return command_word_meaning(name, length, true) & COMMAND_MEMORY;
}

/* Of "_step" and "trainer/global_step", as trackers have them. */
static unsigned key_meaning(const char *name) {
    const char *slash = strrchr(name, '/');
    unsigned meaning = slash ? command_meaning_look_up(slash + 1, strlen(slash + 1)) : 0;
    name += *name == '_';
    return meaning & COMMAND_GLOBAL ? meaning : command_meaning_look_up(name, strlen(name));
}

bool command_is_step(const char *name) {
    return key_meaning(name) & COMMAND_STEP;
}

bool command_is_global(const char *name) {
    return key_meaning(name) & COMMAND_GLOBAL;
}

bool command_is_epoch(const char *name) {
    return (*name | 0x20) == 'e' && strcasecmp(name, "epoch") == 0; /* few begin so */
}
