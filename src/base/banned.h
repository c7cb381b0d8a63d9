/*
 * banned.h: functions that have no safe use here, or whose use belongs in one place; included
 * before everything else by the build, so that calling one fails to compile.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* the error then reads: 'strcpy_is_banned_use_snprintf' undeclared */
#define LAB_BANNED(name, instead) name##_is_banned_use_##instead

#undef strcpy
#define strcpy(a, b) LAB_BANNED(strcpy, snprintf)
#undef stpcpy
#define stpcpy(a, b) LAB_BANNED(stpcpy, snprintf)
#undef strcat
#define strcat(a, b) LAB_BANNED(strcat, lab_str_add)
#undef strncpy
#define strncpy(a, b, n) LAB_BANNED(strncpy, snprintf)
#undef strncat
#define strncat(a, b, n) LAB_BANNED(strncat, lab_str_add)
#undef sprintf
#define sprintf(...) LAB_BANNED(sprintf, snprintf)
#undef vsprintf
#define vsprintf(a, b, c) LAB_BANNED(vsprintf, vsnprintf)
#undef gets
#define gets(a) LAB_BANNED(gets, fgets)
#undef strtok
#define strtok(a, b) LAB_BANNED(strtok, strtok_r)
#undef atoi
#define atoi(a) LAB_BANNED(atoi, strtol)
#undef atol
#define atol(a) LAB_BANNED(atol, strtol)
#undef atoll
#define atoll(a) LAB_BANNED(atoll, strtoll)
#undef atof
#define atof(a) LAB_BANNED(atof, strtod)
#undef rand
#define rand() LAB_BANNED(rand, lab_random_bits)
#undef srand
#define srand(a) LAB_BANNED(srand, lab_random_bits)
#undef system
#define system(a) LAB_BANNED(system, lab_subprocess_run)
#undef popen
#define popen(a, b) LAB_BANNED(popen, lab_subprocess_run)
#undef tmpnam
#define tmpnam(a) LAB_BANNED(tmpnam, mkstemp)
#undef tempnam
#define tempnam(a, b) LAB_BANNED(tempnam, mkstemp)
#undef mktemp
#define mktemp(a) LAB_BANNED(mktemp, mkstemp)
#undef localtime
#define localtime(a) LAB_BANNED(localtime, localtime_r)
#undef gmtime
#define gmtime(a) LAB_BANNED(gmtime, gmtime_r)
#undef ctime
#define ctime(a) LAB_BANNED(ctime, strftime)
#undef asctime
#define asctime(a) LAB_BANNED(asctime, strftime)
