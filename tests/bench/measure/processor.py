"""What a measurement ran on."""
import os


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    return {"cores": os.cpu_count(), "model": model}
