"""The leg agent: PID 1 of a leg container, runs the cases of one plan and reports what it saw.

Standard library only, imports nothing of ours but itself, Python >= 3.9: this folder is all of the
product that enters a leg, where it is the package `agent` below /ao. Its imports are relative,
because here it has another name. It avoids imports that cost milliseconds at every container start
(`json`, `signal`, `stat`, `hashlib` until needed). The protocol and the reasons are in
docs/adr/0003-agent-protocol.md; `runner.core.wire` is the other side of it.

Two rules hold everything together. The agent is root with SETUID, SETGID and KILL, and takes the
credentials of the case user only around a spawn and for looking at what cases left: a case can
neither kill it, nor trace it, nor write to its output. And it never waits without also watching
its standard input: end-of-file there means that the orchestrator is gone, and so is the agent.
"""
