/** One entry of `files` in the JSON output. */
export interface DownloadedFile {
  /** As the user wrote it: relative stays relative. `-` for standard output. */
  readonly path: string
  readonly bytes: number
  /** 64 hexadecimal digits. */
  readonly sha256: string
  /** The link that worked: a fresh one, where the first had expired. */
  readonly url: string
  readonly content_type: string
}
