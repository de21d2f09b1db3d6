import { useEffect, useState } from 'preact/hooks'
import { Button, type ButtonLook } from './button.js'
import { showToast } from './toast.js'

export interface CopyButtonProps extends ButtonLook {
  readonly text: string
  /** The text of the button; without it there is only an icon. */
  readonly children?: string
  readonly label?: string
}

const COPIED_MS = 2_000

export function CopyButton({
  text,
  children,
  label = 'Copy',
  kind = 'secondary',
  size = 'small',
}: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), COPIED_MS)
    return () => clearTimeout(timer)
  }, [isCopied])
  return (
    <Button
      kind={kind}
      size={size}
      icon={isCopied ? 'check' : 'copy'}
      {...(children === undefined ? { label: isCopied ? 'Copied' : label } : {})}
      onClick={async () => {
        if (await copyText(text)) setCopied(true)
        else showToast('The browser did not allow copying. Select the text and copy it.', 'bad')
      }}
    >
      {children === undefined ? undefined : isCopied ? 'Copied' : children}
    </Button>
  )
}

/** `navigator.clipboard` exists only over https and on loopback. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copySelected(text)
  }
}

function copySelected(text: string): boolean {
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'visually-hidden'
  // A modal dialog makes everything outside it inert.
  const parent = document.querySelector('dialog[open]') ?? document.body
  const focused = document.activeElement
  parent.append(field)
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isCopied
}

export interface CodeBlockProps {
  readonly code: string
  /** For screen readers: "Command". */
  readonly label: string
}

/** Text to copy into a terminal or a file. */
export function CodeBlock({ code, label }: CodeBlockProps) {
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="code-scroll" tabIndex={0} aria-label={label}>
        <pre>
          <code>{code}</code>
        </pre>
      </section>
      <CopyButton text={code} kind="ghost" label={`Copy ${label}`} />
    </div>
  )
}
