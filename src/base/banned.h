/*
 * banned.h: functions that have no safe use here, or whose use belongs in one place; included
 * before everything else by the build, so that calling one fails to compile.
 */
#ifndef LAB_BASE_BANNED_H
#define LAB_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAB_BANNED(name) name##_is_banned_use_something_better

#undef strcpy
#define strcpy(a, b) LAB_BANNED(strcpy)
#undef strcat
#define strcat(a, b) LAB_BANNED(strcat)
#undef strncpy
#define strncpy(a, b, n) LAB_BANNED(strncpy)
#undef strncat
#define strncat(a, b, n) LAB_BANNED(strncat)
#undef sprintf
#define sprintf(...) LAB_BANNED(sprintf)
#undef vsprintf
#define vsprintf(a, b, c) LAB_BANNED(vsprintf)
#undef gets
#define gets(a) LAB_BANNED(gets)
#undef strtok
#define strtok(a, b) LAB_BANNED(strtok)
#undef atoi
#define atoi(a) LAB_BANNED(atoi)
#undef atol
#define atol(a) LAB_BANNED(atol)
#undef atof
#define atof(a) LAB_BANNED(atof)
#undef rand
#define rand() LAB_BANNED(rand)
#undef system
#define system(a) LAB_BANNED(system)
#undef popen
#define popen(a, b) LAB_BANNED(popen)
#undef localtime
#define localtime(a) LAB_BANNED(localtime)
#undef gmtime
#define gmtime(a) LAB_BANNED(gmtime)
#undef ctime
#define ctime(a) LAB_BANNED(ctime)
#undef asctime
#define asctime(a) LAB_BANNED(asctime)

#endif
