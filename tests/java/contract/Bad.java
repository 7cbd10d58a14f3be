package told;

/** A connector whose class cannot be initialized. */
public class Bad extends Source {
    static {
        if (Bad.class != null) {
            throw new IllegalStateException("no library of this name");
        }
    }
}
