/**
 * The examples at the end of each help page, by the full name of the command. A test checks that each command has at
 * least two examples, and that commander can parse them.
 */

/** A command line, and an explanation when the line needs one. */
export type Example = readonly [line: string, about?: string]

const RUN_IMAGE: readonly Example[] = [
  ['rushes run image "a red fox in fresh snow" -o fox.png'],
  ['rushes run image --local "a red fox"', 'try it: no key, no network, no cost'],
  ['rushes run image --local --engine images:http://127.0.0.1:1234/v1 "a red fox"'],
  ['rushes run image "the fox at night" -i fox.png -n 4 -o "fox-{index}.{ext}"'],
]

const RUN_VIDEO: readonly Example[] = [
  ['rushes run video "a paper boat in a puddle" -o boat.mp4'],
  ['rushes run video "it runs" -i fox.png --duration 10 -d'],
  ['rushes run video "dusk" --no-wait | rushes wait - -d'],
]

export const EXAMPLES: Readonly<Record<string, readonly Example[]>> = {
  rushes: [
    ['rushes run image --local "a red fox"', 'try it: no key, no network, no cost'],
    ['rushes run image --local --engine images:http://127.0.0.1:1234/v1 "a red fox"'],
    ['rushes run video "a paper boat in a puddle" -o boat.mp4'],
    ['rushes run image "a fox" | rushes run video "it runs" -i -'],
    ['rushes run video "dusk" --no-wait | rushes wait - -d'],
  ],
  'rushes run': [...RUN_IMAGE.slice(0, 2), ...RUN_VIDEO.slice(0, 1)],
  'rushes run image': RUN_IMAGE,
  'rushes run video': RUN_VIDEO,
  'rushes run model': [
    [`rushes run model acme/still-1 --input '{"prompt": "a fox"}' -d`],
    ['rushes run model acme/still-1 --input @input.json -o result.png'],
  ],
  'rushes status': [['rushes status --last', 'the newest run'], ['rushes status run_7k2m9x --json']],
  'rushes wait': [
    ['rushes wait --last -d', 'the newest run; download its outputs'],
    ['rushes wait run_7k2m9x --timeout 5m -o fox.png'],
    ['rushes wait --all --notify', 'unfinished runs; notify when they have ended'],
  ],
  'rushes cancel': [
    ['rushes cancel run_7k2m9x'],
    ['rushes cancel --all --label draft', 'unfinished runs with this label'],
  ],
  'rushes download': [
    ['rushes download --last', 'the newest run'],
    ['rushes download run_7k2m9x -o out/ --overwrite'],
  ],
  'rushes list': [
    ['rushes list --status succeeded --kind image'],
    ['rushes list --limit 0 --json', 'everything, for a script'],
  ],
  'rushes show': [
    ['rushes show run_7k2m9x'],
    ['rushes show run_7k2m9x --again', 'print the command that repeats it'],
    ['rushes show run_7k2m9x --show', 'draw its files in the terminal'],
  ],
  'rushes open': [['rushes open --last', 'the newest run'], ['rushes open run_7k2m9x']],
  'rushes init': [['rushes init'], ['rushes init shots', 'in another folder']],
  'rushes gallery': [
    ['rushes gallery --open', 'write gallery.html and look at it'],
    ['rushes gallery --kind image --since 7d -o fox/index.html'],
  ],
  'rushes spend': [
    ['rushes spend --since 30d'],
    ['rushes spend --by label --json', 'one line for each label, then the total'],
  ],
  'rushes forget': [['rushes forget run_7k2m9x'], ['rushes forget --older-than 90d --yes']],
  'rushes batch': [
    ['rushes batch shots.yaml --dry-run', 'show what would be created'],
    ['rushes batch shots.yaml --max-runs 20'],
    ['rushes batch shots.yaml --watch', 'while you edit: asks after each change'],
    ['rushes batch shots.yaml --check', 'for CI: fail if an asset is missing'],
  ],
  'rushes models': [
    ['rushes models acme/still-2', 'the parameters of a model'],
    ['rushes models --refresh', 'ask the service for its models'],
  ],
  'rushes models add': [['rushes models add still-2.yaml'], ['rushes models add - < still-2.json']],
  'rushes models save': [
    ['rushes models save flux.yaml', 'the model of the last --engine'],
    ['rushes models save - 127.0.0.1/sd-cpp-local'],
  ],
  'rushes models import': [
    ['rushes models import fal:fal-ai/flux/dev', 'into the folder of local.models'],
    ['rushes models import replicate:acme/still-2 --from schema.json -o still-2.yaml'],
    ['rushes models import --check', 'what has changed since'],
  ],
  'rushes models search': [['rushes models search image to video'], ['rushes models search upscaler --json']],
  'rushes models remove': [['rushes models remove acme/still-2'], ['rushes models remove acme/cinema-2']],
  'rushes login': [
    ['rushes login --base-url https://api.example.com'],
    ['rushes login --profile work --no-verify < key.txt', 'from a file'],
  ],
  'rushes logout': [['rushes logout'], ['rushes logout --profile work']],
  'rushes config': [
    ['rushes config set baseUrl https://api.example.com'],
    ['rushes config set models.image acme/still-1'],
    ['rushes config list'],
  ],
  'rushes config list': [
    ['rushes config list'],
    ['rushes config list --show-origin', 'what sets each setting'],
    ['rushes config list --profile work --json'],
  ],
  'rushes config get': [['rushes config get baseUrl'], ['rushes config get models.video --profile work']],
  'rushes config set': [
    ['rushes config set baseUrl https://api.example.com'],
    ['rushes config set models.image acme/still-1 --profile work'],
    [`rushes config set prices '{"acme/still-1": {"run": 0.04}}'`],
    ['rushes config set prices @prices.json'],
  ],
  'rushes config unset': [['rushes config unset timeout'], ['rushes config unset baseUrl --profile work']],
  'rushes config path': [['rushes config path'], ['rushes config path --json']],
  'rushes profile': [['rushes profile list'], ['rushes profile use work']],
  'rushes profile list': [['rushes profile list'], ['rushes profile list --json']],
  'rushes profile use': [['rushes profile use work'], ['rushes profile use default']],
  'rushes doctor': [
    ['rushes doctor'],
    ['rushes doctor --json', 'one line for each check'],
    ['rushes doctor --models still.yaml', 'the servers of your models'],
  ],
  'rushes serve': [
    ['rushes serve', 'on http://127.0.0.1:7878'],
    ['rushes serve --data ./service --retain 7d --log-level info'],
    ['rushes serve --data ./test --fault create:429:RATE_LIMITED:2'],
  ],
  'rushes mcp': [
    ['rushes mcp --max-runs 5 --max-cost 2', 'in the configuration of an MCP client'],
    ['rushes mcp --local', 'try it without key or cost'],
  ],
  'rushes admin': [
    ['rushes admin account create acme --balance 500'],
    ['rushes admin key create --account acme --expires 30d'],
  ],
  'rushes admin account': [['rushes admin account create acme --balance 500'], ['rushes admin account list']],
  'rushes admin account create': [
    ['rushes admin account create acme'],
    ['rushes admin account create acme --balance 500'],
  ],
  'rushes admin account list': [['rushes admin account list'], ['rushes admin account list --json']],
  'rushes admin account ban': [['rushes admin account ban acme'], ['rushes admin account ban acme --json']],
  'rushes admin account unban': [
    ['rushes admin account unban acme'],
    ['rushes admin account unban acme --json'],
  ],
  'rushes admin key': [
    ['rushes admin key create --account acme --spend-limit 100'],
    ['rushes admin key disable 1'],
  ],
  'rushes admin key create': [
    ['rushes admin key create --account acme --name ci --expires 30d'],
    ['rushes admin key create --account acme --allow-ip 10.0.0.0/8 --quota 100'],
  ],
  'rushes admin key list': [['rushes admin key list'], ['rushes admin key list --account acme --json']],
  'rushes admin key disable': [['rushes admin key disable 1'], ['rushes admin key disable ci']],
  'rushes admin key enable': [['rushes admin key enable 1'], ['rushes admin key enable ci']],
  'rushes admin key set': [
    ['rushes admin key set ci --spend-limit 500'],
    ['rushes admin key set 1 --allow-ip none --expires none', 'remove both limits'],
  ],
  'rushes admin credits': [['rushes admin credits add acme 100'], ['rushes admin credits list acme']],
  'rushes admin credits add': [
    ['rushes admin credits add acme 100'],
    ['rushes admin credits add acme -- -5', 'take 5 credits away'],
  ],
  'rushes admin credits list': [
    ['rushes admin credits list acme'],
    ['rushes admin credits list acme --limit 0 --json'],
  ],
  'rushes admin user': [['rushes admin user add ann@example.com --account acme'], ['rushes admin user list']],
  'rushes admin user add': [
    ['rushes admin user add ann@example.com --account acme'],
    ['rushes admin user add bob@b.de --account acme --public-url https://b.de'],
  ],
  'rushes admin user list': [['rushes admin user list'], ['rushes admin user list --json']],
  'rushes admin user remove': [
    ['rushes admin user remove ann@example.com'],
    ['rushes admin user remove bob@example.com --json'],
  ],
  'rushes admin user link': [
    ['rushes admin user link ann@example.com'],
    ['rushes admin user link ann@example.com --public-url https://b.de'],
  ],
  'rushes admin run': [
    ['rushes admin run list --status failed'],
    ['rushes admin run adopt run_3f2a video_17'],
  ],
  'rushes admin run list': [
    ['rushes admin run list --account acme --status failed'],
    ['rushes admin run list --limit 0 --json'],
  ],
  'rushes admin run refund': [
    ['rushes admin run refund run_3f2a'],
    ['rushes admin run refund run_3f2a --data ./data'],
  ],
  'rushes admin run adopt': [
    ['rushes admin run adopt run_3f2a video_17'],
    ['rushes admin run adopt run_3f2a video_17 --data ./data'],
  ],
  'rushes admin run cancel': [
    ['rushes admin run cancel run_7k2m9x'],
    ['rushes admin run cancel run_7k2m9x --database postgres://db/rushes'],
  ],
  'rushes admin backup': [
    ['rushes admin backup service-backup.db'],
    ['rushes admin backup "service-$(date +%F).db" --json'],
  ],
  'rushes admin migrate': [
    ['rushes admin migrate --from ./service', 'to RUSHES_DATABASE_URL'],
    ['rushes admin migrate --from ./service --storage s3://assets/rushes'],
  ],
  'rushes admin verify': [['rushes admin verify'], ['rushes admin verify --json']],
  'rushes completion': [
    ['source <(rushes completion bash)', 'in ~/.bashrc'],
    ['source <(rushes completion zsh)', 'in ~/.zshrc, after compinit'],
    ['rushes completion fish > ~/.config/fish/completions/rushes.fish'],
  ],
  'rushes help': [['rushes help run image'], ['rushes help exit-codes']],
}
