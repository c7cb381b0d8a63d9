/*
 * palette.h: the colours of charts and of the page around them, in light and in dark. Categories
 * are Okabe and Ito's (2008), which the colour-blind can tell apart, blue and orange first; grey
 * in place of yellow, which white drowns. Maps run from `less` over the ground to `more`; ink is
 * legible on all of them.
 */
#pragma once

/* X(name, CSS variable, light, dark) */
#define LAB_PALETTE(X)                                                                             \
    X(C0, "c0", "#0072b2", "#4aa3df")                                                              \
    X(C1, "c1", "#e69f00", "#f0b43c")                                                              \
    X(C2, "c2", "#009e73", "#2fbf96")                                                              \
    X(C3, "c3", "#cc79a7", "#de95be")                                                              \
    X(C4, "c4", "#56b4e9", "#8dd0f5")                                                              \
    X(C5, "c5", "#d55e00", "#f08040")                                                              \
    X(C6, "c6", "#000000", "#f2f2f2")                                                              \
    X(C7, "c7", "#999999", "#a8a8a8")                                                              \
    X(SHADE0, "shade0", "#dfe9f3", "#1e2b39")                                                      \
    X(SHADE1, "shade1", "#f7ead2", "#372f1c")                                                      \
    X(SHADE2, "shade2", "#e2efe2", "#1e3223")                                                      \
    X(SHADE3, "shade3", "#efe2ee", "#342235")                                                      \
    X(LESS, "less", "#e8894a", "#a85210")                                                          \
    X(MORE, "more", "#5aa9d6", "#2a6f9e")                                                          \
    X(INK, "ink", "#222222", "#e8e8e8")                                                            \
    X(AXIS, "axis", "#555555", "#b0b4ba")                                                          \
    X(GRID, "grid", "#dddddd", "#3a3e45")                                                          \
    X(WARN, "warn", "#b34700", "#ff9b57")                                                          \
    X(GROUND, "ground", "#ffffff", "#16181c")

#define LAB_PALETTE_NAME(name, css, light, dark) LAB_COLOUR_##name,
enum lab_colour { LAB_PALETTE(LAB_PALETTE_NAME) LAB_COLOURS };
#undef LAB_PALETTE_NAME

#define LAB_COLOUR_CATEGORIES 8
#define LAB_COLOUR_SHADES     4

/* Declarations of the variables, for a rule of a style sheet. */
#define LAB_PALETTE_LIGHT_OF(name, css, light, dark) "--" css ":" light ";"
#define LAB_PALETTE_DARK_OF(name, css, light, dark)  "--" css ":" dark ";"
#define LAB_PALETTE_LIGHT                            LAB_PALETTE(LAB_PALETTE_LIGHT_OF)
#define LAB_PALETTE_DARK                             LAB_PALETTE(LAB_PALETTE_DARK_OF)
