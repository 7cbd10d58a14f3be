import java.text.DateFormatSymbols;
import java.text.ParseException;
import java.text.SimpleDateFormat;
import java.util.Locale;
import java.util.Set;
import java.util.TimeZone;
import java.util.TreeSet;

/** Prints texts with zones as a fresh SimpleDateFormat in UTC reads them: pattern, text, milliseconds or "refused". */
public class ZoneTexts {
    private static final String[] DAYS = {
        "1899-07-01 00:00", "1985-07-01 10:00", "2012-03-01 10:00", "2024-01-15 10:00",
        "2024-03-31 02:30", "2024-07-15 10:00", "2024-10-27 02:30", "2050-07-01 00:00"};
    private static final String[] NUMBERS = (
        "GMT GMT+2 GMT+02 GMT+02:00 GMT+2:00 GMT+2:0 GMT+0200 GMT+200 GMT+20 GMT-3:30 gmt+02:00 GMT+24:00 "
        + "GMT+23:59 GMT+2:60 GMT+ GMT-x GMTx GMT2 UTC UTC+1 UTC+01:00 UT Z z +02 +2 +0200 +02:00 +2:00 -0330 "
        + "+020 +2400 +2359 +0260 PST8PDT EST5EDT pst Europe/Berlin Asia/Kolkata WITA ISTx").split(" ");

    public static void main(String[] arguments) {
        Set<String> zones = new TreeSet<>();
        for (String[] row : DateFormatSymbols.getInstance(Locale.US).getZoneStrings()) {
            for (int i = 1; i <= 4; i++) {
                zones.add(row[i]);
                zones.add(row[i].toLowerCase(Locale.US) + " and more");
            }
        }
        zones.remove("");
        for (String day : DAYS) {
            for (String zone : zones) {
                print("yyyy-MM-dd HH:mm z", day + " " + zone);
            }
            for (String pattern : new String[] {"z", "zzzz", "Z", "X", "XX", "XXX", "z'!'"}) {
                for (String zone : NUMBERS) {
                    String end = pattern.endsWith("'") ? "!" : "";
                    print("yyyy-MM-dd HH:mm " + pattern, day + " " + zone + end);
                }
            }
        }
    }

    private static void print(String pattern, String text) {
        SimpleDateFormat format = new SimpleDateFormat(pattern);
        format.setTimeZone(TimeZone.getTimeZone("UTC"));
        String found;
        try {
            found = Long.toString(format.parse(text).getTime());
        } catch (ParseException e) {
            found = "refused";
        }
        System.out.println(pattern + "\t" + text + "\t" + found);
    }
}
