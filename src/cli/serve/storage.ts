/** `--storage`. The AWS SDK is loaded for this flag alone. */
import { usageError } from '../../errors.js'
import type { Storage } from '../../service/files/contract.js'
import type { Context } from '../context/context.js'

export interface StorageFlags {
  readonly storage?: string
  readonly storageProxy?: boolean
}

/** Undefined without the flag. Throws `usage` when the storage refuses what the service needs. */
export async function openStorage(
  { env, clock, out }: Pick<Context, 'env' | 'clock' | 'out'>,
  { storage: url, storageProxy = false }: StorageFlags,
): Promise<Storage | undefined> {
  if (url === undefined) {
    if (storageProxy)
      throw usageError('--storage-proxy needs --storage.', 'Example: --storage s3://bucket/prefix')
    return undefined
  }
  const { openS3Storage } = await import('../../service/files/s3-storage.js')
  return await openS3Storage({ url, proxy: storageProxy, env, clock, warn: out.warn })
}
