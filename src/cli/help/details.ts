/** Further sentences of the help pages, by the full name of the command. docs/commands.md contains them too. */
export const DETAILS: Readonly<Record<string, string>> = {
  'rushes models':
    'Without a name, lists the known models with their prices. Asks the service with --refresh, and if its ' +
    'list is not known or is older than a day.',
  'rushes models import':
    'Prints the path of the document, and sets local.models if it is not set. The price of fal needs FAL_KEY, and the ' +
    'schemas of Replicate need REPLICATE_API_TOKEN; a key is sent only to its provider. Run the model with --local.',
  'rushes models search':
    'The names are those of `rushes models import`. Replicate needs REPLICATE_API_TOKEN. fal publishes no numbers of ' +
    'runs, and Replicate no prices.',
  'rushes status':
    'Asks the service. For everything that this machine knows about a run, use `rushes show`, which sends ' +
    'no requests.',
  'rushes wait':
    'Prints output URLs, or file paths with -d or -o. To save the files of runs that have finished, use ' +
    '`rushes download`.',
  'rushes download':
    'A run that is still running ends with exit code 11, unless --timeout is given. To wait for it, use `rushes ' +
    'wait -d`.',
  'rushes cancel':
    'Prints the status of each run. A run that has ended stays as it is. Whether a run that was being rendered is ' +
    'refunded depends on the service, and not every service can cancel runs.',
  'rushes list':
    'Shows the last status that this machine has seen, and sends no requests. To see the pictures and ' +
    'videos, use `rushes gallery`.',
  'rushes show':
    'Shows the prompt, model, times, files and errors that the journal of this machine has. Sends no ' +
    'requests. For the current status, use `rushes status`.',
  'rushes open':
    'Opens the downloaded files, or the output URLs of a run without a file, in the default program.',
  'rushes gallery':
    'Writes one HTML page with the downloaded pictures and videos. For a table of all runs, use `rushes list`.',
  'rushes spend': 'Counts the runs that were created on this machine, and sends no requests.',
  'rushes forget':
    'Removes the runs that you name, or all runs that match every flag. --local alone selects all local ' +
    'runs. Downloaded files stay.',
  'rushes login':
    'Asks for the key on a terminal, otherwise reads the first line of standard input. Checks it with a ' +
    'free request, and sets the models if the service lists them.',
  'rushes logout': 'The key still works at the service. To revoke it, disable it in your account.',
  'rushes config set': 'The value of `prices` is JSON, @file or -, and replaces all prices of the profile.',
  'rushes doctor':
    'Costs nothing, changes nothing and sends at most two requests. A failed check sets the exit code; ' +
    'warnings do not.',
  'rushes mcp': 'An MCP client starts it, and talks to it on standard input and output.',
  'rushes serve':
    'Runs until Ctrl-C, SIGTERM or SIGHUP. The first start creates an account and an API key, and prints the ' +
    '`export` lines to use it.',
  'rushes admin': 'Works on the data of the service, while it runs or while it is stopped.',
  'rushes admin key': 'A key is identified by its number, or by its name if only one key has that name.',
  'rushes admin user add':
    'Prints a single-use link, which expires in 15 minutes. The person sets a password there. No email is sent. ' +
    'A member creates runs and manages their own API keys. An owner also manages all keys, credits and users.',
  'rushes admin backup':
    'The file appears only after the copy is complete. An existing file is never replaced. ' +
    'Outputs and reference images are not part of it.',
  'rushes admin migrate':
    'Stop the service first. The target must be empty. After the move, `service.db` is named ' +
    '`service.db.moved`, and `serve` and `admin` refuse the folder.',
}
