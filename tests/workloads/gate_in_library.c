// The program of gate.c in a library: what threads wait on lies there.
int gate_main(int argc, char **argv);

int main(int argc, char **argv)
{
	return gate_main(argc, argv);
}
