/** Checks the config file, the address and the proxy settings without sending anything. */
import { existsSync, statSync } from 'node:fs'
import { isLoopback } from '../../host/http.js'
import { findProxy, noProxy } from '../../host/proxy.js'
import type { Kind } from '../../protocol/models.js'
import { LOCAL_MODELS } from '../../service/local-models.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import type { Env } from '../process/io.js'
import { addressHint } from '../settings/address-hint.js'
import { MODEL_SETTINGS, modelFor } from '../settings/model-settings.js'
import { SETTINGS } from '../settings/table.js'
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
  try {
    const proxy = findProxy(env, url.protocol)
    if (proxy === undefined) return unused(ok('proxy', 'none'))
    const except = noProxy(env) === '' ? '' : `, except for ${noProxy(env)}`
    return { finding: ok('proxy', `${proxy.host}${except}`), isUsed: true }
  } catch (error) {
    const { message, hint, exitCode } = asRushesError(error)
    return unused(failed('proxy', message, { advice: hint, exitCode }))
  }
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
