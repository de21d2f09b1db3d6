/** Checks the config file, the address and the proxy settings without sending anything. */
import { existsSync, statSync } from 'node:fs'
import { isLoopback } from '../../host/http.js'
import type { Kind } from '../../protocol/models.js'
import { LOCAL_MODELS } from '../../service/local-models.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import type { Env } from '../process/io.js'
import { addressHint } from '../settings/address-hint.js'
import { MODEL_SETTINGS, modelFor } from '../settings/model-settings.js'
import { SETTINGS, variable } from '../settings/table.js'
import { type Finding, failed, ok, skipped, warning } from './finding.js'

export async function checkConfig(ctx: Context): Promise<readonly Finding[]> {
  const { path } = ctx.config
  if (!existsSync(path)) return [ok('config', `no config file (${path})`)]
  try {
    await ctx.profile()
    const mode = statSync(path).mode & 0o777
    return process.platform !== 'win32' && (mode & 0o077) !== 0
      ? [
          warning(
            'config',
            `other users can read ${path} (mode ${mode.toString(8)})`,
            `The file may contain the API key. Run: chmod 600 ${path}`,
          ),
        ]
      : [ok('config', path)]
  } catch (error) {
    const { message, hint } = asRushesError(error)
    return [failed('config', message, { advice: hint })]
  }
}

/** Includes the URL when the address is valid. */
export async function checkAddress(ctx: Context): Promise<{ readonly finding: Finding; readonly url?: URL }> {
  try {
    const url = new URL(await ctx.baseUrl())
    const address = url.href.replace(/\/$/, '')
    const hint = addressHint(address)
    return { finding: hint === undefined ? ok('address', address) : warning('address', address, hint), url }
  } catch (error) {
    const { message, hint, exitCode } = asRushesError(error)
    return { finding: failed('address', message, { advice: hint, exitCode }) }
  }
}

/** The proxy for requests to this address, shown without its password. */
export function checkProxy(
  url: URL | undefined,
  env: Env,
): { readonly finding: Finding; readonly isUsed: boolean } {
  const unused = (finding: Finding) => ({ finding, isUsed: false })
  if (url === undefined) return unused(skipped('proxy', 'no address'))
  if (isLoopback(url.hostname)) return unused(ok('proxy', 'none: loopback addresses never use one'))
  const value = (name: string) => variable(env, name.toLowerCase()) ?? variable(env, name)
  const http = value('HTTP_PROXY')
  const proxy = url.protocol === 'https:' ? (value('HTTPS_PROXY') ?? http) : http
  if (proxy === undefined) return unused(ok('proxy', 'none'))
  if (!URL.canParse(proxy))
    return unused(
      failed('proxy', 'the proxy URL is not valid', {
        advice: 'Example: HTTPS_PROXY=http://proxy.example.com:3128',
      }),
    )
  const noProxy = value('NO_PROXY')
  const except = noProxy === undefined ? '' : `, except for ${noProxy}`
  return { finding: ok('proxy', `${new URL(proxy).host}${except}`), isUsed: true }
}

/** The form of the model's name; whether the service has it is known only after a create. */
export async function checkModel(ctx: Context, kind: Kind): Promise<Finding> {
  const check = `${kind} model`
  try {
    const model = await modelFor(ctx, kind)
    if (model !== undefined) return ok(check, model)
    const { environment, key } = SETTINGS[MODEL_SETTINGS[kind]]
    return warning(
      check,
      'not set',
      `Set ${environment} or run \`rushes config set ${key} <provider/name>\`; or add --model to each \`rushes run ${kind}\`.\nThe local service (\`rushes serve\`, --local) has ${LOCAL_MODELS[kind]}.`,
    )
  } catch (error) {
    const { message, hint, exitCode } = asRushesError(error)
    return failed(check, message, { advice: hint, exitCode })
  }
}
