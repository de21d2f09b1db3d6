import { useEffect, useState } from 'preact/hooks'
import { Button, type ButtonLook } from './button.js'
import { showToast } from './toast.js'

export interface CopyButtonProps extends Pick<ButtonLook, 'kind' | 'size' | 'label'> {
  readonly text: string
  /** Button text. Without it, the button shows only an icon. */
  readonly children?: string
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
      onClick={() =>
        // Undefined over plain HTTP from another machine: the service refuses to sign in users there.
        (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
          () => setCopied(true),
          () => showToast('The browser did not allow copying. Select the text and copy it.', 'bad'),
        )
      }
    >
      {children === undefined ? undefined : isCopied ? 'Copied' : children}
    </Button>
  )
}

export interface CodeBlockProps {
  readonly code: string
  /** Description for screen readers, such as "Command". */
  readonly label: string
}

/** Code with a copy button. */
export function CodeBlock({ code, label }: CodeBlockProps) {
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard */}
      <section class="code-scroll" tabIndex={0} aria-label={label}>
        <pre>
          <code>{code}</code>
        </pre>
      </section>
      <CopyButton text={code} kind="ghost" label={`Copy ${label}`} />
    </div>
  )
}
