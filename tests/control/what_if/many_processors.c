/* Tell a program that the machine has 128 processors. */

int get_nprocs(void) { return 128; }
