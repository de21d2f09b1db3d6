/** An example at the end of a help page, and further sentences at its beginning, by the full name of the command. */

/** A command line that can be copied, and the sentences. */
type CommandHelp = readonly [example: string, details?: string]

export const HELP: Readonly<Record<string, CommandHelp>> = {
  rushes: ['rushes run image --local "a red fox"'],
  'rushes run': ['rushes run image "a red fox in fresh snow" -o fox.png'],
  'rushes run image': ['rushes run image "at night" -i fox.png -n 4 -o "fox-{index}.{ext}"'],
  'rushes run video': ['rushes run video "it runs" -i fox.png --duration 10 -o fox.mp4'],
  'rushes run model': [`rushes run model acme/still-1 --input '{"prompt": "a fox"}' -d`],
  'rushes batch': ['rushes batch shots.yaml --max-runs 20'],
  'rushes models': [
    'rushes models acme/still-2',
    'Without a name, lists the known models with their prices.',
  ],
  'rushes models import': [
    'rushes models import fal:fal-ai/flux/dev',
    'Prints the path of the model file, and sets local.models if it is not set. The schemas of Replicate need ' +
      'REPLICATE_API_TOKEN; a key is sent only to its provider. Run the model with --local.',
  ],
  'rushes status': [
    'rushes status --last',
    'Asks the service. For everything that this machine knows about a run, use `rushes show`, which sends no requests.',
  ],
  'rushes wait': [
    'rushes wait --last -d',
    'Prints output URLs, or file paths with -d or -o. To save the files of runs that have finished, use ' +
      '`rushes download`.',
  ],
  'rushes download': [
    'rushes download --last -o out/',
    'A run that is still running ends with exit code 11, unless --timeout is given. To wait for it, use `rushes ' +
      'wait -d`.',
  ],
  'rushes cancel': [
    'rushes cancel --all --label draft',
    'Prints the status of each run. A run that has ended stays as it is. Whether a run that was being rendered is ' +
      'refunded depends on the service, and not every service can cancel runs.',
  ],
  'rushes list': [
    'rushes list --status succeeded --kind image',
    'Shows the last status that this machine has seen, and sends no requests.',
  ],
  'rushes show': [
    'rushes show --last',
    'Shows the prompt, model, times, files and errors that the journal of this machine has. Sends no ' +
      'requests. For the current status, use `rushes status`.',
  ],
  'rushes open': [
    'rushes open --last',
    'Opens the downloaded files, or the output URLs of a run without a file, in the default program.',
  ],
  'rushes gallery': [
    'rushes gallery --kind image --since 7d -o fox/index.html',
    'Writes one HTML page with the downloaded pictures and videos. For a table of all runs, use `rushes list`.',
  ],
  'rushes spend': [
    'rushes spend --since 30d --by label',
    'Counts the runs that were created on this machine, and sends no requests.',
  ],
  'rushes forget': [
    'rushes forget --before 90d --yes',
    'Removes the runs that you name, or all runs that match every flag. With --local or --base-url only runs of ' +
      'that service match. Downloaded files stay.',
  ],
  'rushes login': [
    'rushes login --base-url https://api.example.com',
    'Asks for the key on a terminal, otherwise reads the first line of standard input. Checks it with a ' +
      'free request, and sets the models if the service lists them.',
  ],
  'rushes logout': [
    'rushes logout --profile work',
    'The key still works at the service. To revoke it, disable it in your account.',
  ],
  'rushes config': [
    'rushes config set models.image acme/still-1',
    'Without a subcommand, lists the settings of the profile.',
  ],
  'rushes config set': [
    'rushes config set timeout 45m --profile work',
    'The value of `prices` is JSON, @file or -, and replaces all prices of the profile.',
  ],
  'rushes doctor': [
    'rushes doctor',
    'Costs nothing, changes nothing and sends at most two requests. A failed check sets the exit code; ' +
      'warnings do not.',
  ],
  'rushes mcp': [
    'rushes mcp --max-runs 5 --max-cost 2',
    'An MCP client starts it, and talks to it on standard input and output.',
  ],
  'rushes serve': [
    'rushes serve --data ./service --retain 7d',
    'Runs until Ctrl-C, SIGTERM or SIGHUP. The first start creates an account and an API key, and prints the ' +
      '`export` lines to use it.',
  ],
  'rushes admin': [
    'rushes admin account create acme --balance 500',
    'Works on the data of the service, while it runs or while it is stopped.',
  ],
  'rushes admin key': [
    'rushes admin key disable 2',
    'A key is identified by its number in `rushes admin key list`, or by its name if no other key has it.',
  ],
  'rushes admin key create': ['rushes admin key create --account acme --name ci --expires 30d'],
  'rushes admin key set': ['rushes admin key set 2 --spend-limit 500 --allow-ip none'],
  'rushes admin user add': [
    'rushes admin user add ann@example.com --account acme',
    'Prints a single-use link, which expires in 15 minutes. The person sets a password there. No email is sent.',
  ],
  'rushes admin run adopt': ['rushes admin run adopt run_3f2a video_17'],
  'rushes admin backup': [
    'rushes admin backup service-backup.db',
    'The file appears only after the copy is complete. An existing file is never replaced. ' +
      'Outputs and reference images are not part of it.',
  ],
  'rushes admin migrate': [
    'rushes admin migrate --data ./service --to-storage s3://assets/rushes',
    'Stop the service first. The target must be empty. After the move, `service.db` is named ' +
      '`service.db.moved`, and `serve` and `admin` refuse the folder.',
  ],
  'rushes completion': [
    'source <(rushes completion bash)',
    'For zsh, write the line into ~/.zshrc after compinit. For fish, pipe the script to `source`.',
  ],
}
