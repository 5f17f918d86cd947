// Runs the program of gate.c from a library, where its locks are.
int gate_main(int argc, char **argv);

int main(int argc, char **argv)
{
	return gate_main(argc, argv);
}
