import { expect, it } from 'vitest'
import { inToolWords } from '../../../src/cli/mcp/answers.js'

it.each([
  [
    'Continue with `rushes batch --concurrency 2 shots.yaml`: runs that exist are not paid again.',
    'Continue with run_batch without force: runs that exist are not paid again.',
  ],
  ['Resume with `rushes wait --local -d run_1`.', 'Resume with wait_run.'],
  ['`rushes list` shows their ids.', 'list_runs shows their ids.'],
  ['See all parameters with `rushes models image`.', 'See all parameters with list_models.'],
  ['Use --overwrite to replace it.', 'Use overwrite: true to replace it.'],
  ['Choose another path with -o <path>.', 'Choose another path with output.'],
  [
    '--dry-run lists them. --only <glob> selects some of them.',
    'plan_batch lists them. only selects some of them.',
  ],
  ['Give a file. See `rushes batch --help`.', 'Give a file.'],
  ['Example: `rushes run image "a red fox"`', 'Example: {"prompt": "a red fox in fresh snow"}'],
  [
    '--aspect-ratio must be one of 1:1. --image-url takes at most 14.',
    'aspect_ratio must be one of 1:1. image_urls takes at most 14.',
  ],
  [
    '--since: "x" is not a valid duration (examples: 90s, 15m).',
    'since: "x" is not a valid duration (examples: 90s, 15m).',
  ],
  [
    'This batch would create 3 runs, but --max-runs allows 1.',
    'This batch would create 3 runs, but max_runs allows 1.',
  ],
  [
    '--only x does not match the name or output of any run.',
    'only x does not match the name or output of any run.',
  ],
  ['Create it again with --only a --force.', 'Create it again with only: ["a"] and force: true.'],
  [
    'Set the model with --model <provider/name>, RUSHES_IMAGE_MODEL or `rushes config set models.image <provider/name>`.',
    'Give model, or ask the user to set RUSHES_IMAGE_MODEL or `rushes config set models.image <provider/name>`.',
  ],
  [
    'See the parameters of the model with `rushes models`. To see the request body, add --dry-run.',
    'See the parameters of the model with list_models.',
  ],
  [
    'Give an image as a path, an http(s) URL, a data: URL, run:<id> or -.',
    'Give an image as a path, an http(s) URL, a data: URL or run:<id>.',
  ],
  [
    'Use --base-url http://127.0.0.1:7878. Or give the URL.',
    'It needs a server that the user starts with `rushes mcp --base-url http://127.0.0.1:7878`. Or give the URL.',
  ],
  [
    'Use --profile a --base-url http://x.',
    'It needs a server that the user starts with `rushes mcp --profile a --base-url http://x`.',
  ],
  ['Use --local.', 'It needs a server that the user starts with `rushes mcp --local`.'],
  // For the user.
  ['Use `rushes mcp --max-runs 3`.', 'Use `rushes mcp --max-runs 3`.'],
  ['Ask with `rushes models --refresh`.', 'Ask with `rushes models --refresh`.'],
  ['Store it with `rushes login`.', 'Store it with `rushes login`.'],
  ['Remove it with `rushes forget ~3f2a --yes`.', 'Remove it with `rushes forget ~3f2a --yes`.'],
])('%s', (said, words) => expect(inToolWords(said)).toBe(words))
