"""Prints all endpoints of the job as Paddle's own code finds them. That code needs nothing of the rest of Paddle."""

import importlib.util
import os

FILE = "distributed/backup_env.py"

assert "PADDLE_TRAINER_ENDPOINTS" not in os.environ
package = importlib.util.find_spec("paddle").submodule_search_locations[0]
spec = importlib.util.spec_from_file_location("backup_env", os.path.join(package, FILE))
found = importlib.util.module_from_spec(spec)
spec.loader.exec_module(found)
os.write(1, f"endpoints {os.environ['PADDLE_TRAINER_ID']} {found.getenv_or_backup('PADDLE_TRAINER_ENDPOINTS')}\n".encode())
